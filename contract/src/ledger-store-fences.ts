import { expect } from 'vitest';
import type { AppendState } from '../../packages/ledger/src/engine/store-port.ts';
import { AT, append, digestOf, look, newLog, REF, reading, writeOf } from './ledger-store-rows.ts';
import type { StoreTest } from './ledger-store-test.ts';

/** Fences and permits, what was proven, usage, and the end. */
export function fenceContract(test: StoreTest): void {
  const fence = { replica: 'p1', account: 'ana', generation: 3, instance: 'i1', permit: 7, proven: 1, at: AT };

  test('[LG8] a fence is kept with the append; permits belong to a log and a generation', async ({ store, tested }) => {
    await store.createLog({ workspace: 'acme', log: 'team' }, newLog('t'));
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], { fences: [fence] });
    store = await tested.reopen();
    const found = async (ref = REF) => (await look(store, { replicas: ['p1', 'p2'] }, ref)).fences;
    expect([...(await found()).values()]).toEqual([
      { replica: 'p1', account: 'ana', generation: 3, instance: 'i1', permit: 7 },
    ]);
    expect((await found({ workspace: 'acme', log: 'team' })).get('p1')?.permit).toBe(0);
    await store.append(REF, reading({ replicas: ['p1'] }), (state) => ({
      value: undefined,
      write: writeOf((state as AppendState).log, [], {
        fences: [{ ...fence, generation: 4, instance: 'i2', permit: 1 }],
      }),
    }));
    expect((await found()).get('p1')).toMatchObject({ generation: 4, instance: 'i2', permit: 1, account: 'ana' });
  });

  test('[LG8 LG13] a handshake reads and raises fence and permits in one transaction', async ({ store }) => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], { fences: [fence] });
    const wanted = {
      replica: 'p1',
      logs: [
        { log: 'main', versions: [1], signatureAt: 1 },
        { log: 'absent', versions: [], signatureAt: null },
      ],
    };
    await store.meet('acme', wanted, (state) => {
      expect(state?.fence).toMatchObject({ account: 'ana', generation: 3, instance: 'i1' });
      expect([...(state?.logs.keys() ?? [])]).toEqual(['main']);
      const met = state?.logs.get('main');
      expect(met).toMatchObject({ permit: 7, signature: digestOf('50') });
      expect(met?.chains.get(1)).toBe(digestOf(1));
      return {
        value: undefined,
        write: {
          replica: 'p1',
          account: 'ana',
          generation: 4,
          instance: 'i2',
          at: '2026-11-30T00:00:01.000Z',
          app: '{"name":"x","schema":"y"}',
          health: '{"unsent":3,"attention":0}',
          logs: [{ log: 'main', permit: 2, proven: 1 }],
        },
      };
    });
    const replicas = await store.replicas('acme');
    expect(replicas).toEqual([
      {
        replica: 'p1',
        account: 'ana',
        generation: 4,
        instance: 'i2',
        firstSeenAt: AT,
        lastSeenAt: '2026-11-30T00:00:01.000Z',
        app: '{"name":"x","schema":"y"}',
        health: '{"unsent":3,"attention":0}',
        proven: { main: 1 },
      },
    ]);
    await store.meet('acme', { replica: 'p1', logs: [] }, (state) => {
      expect(state?.fence?.generation).toBe(4);
      return { value: undefined, write: null };
    });
  });

  test('[RT7] what a replica proved to hold only grows', async ({ store }) => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], { fences: [{ ...fence, proven: 5 }] });
    await store.recordProven(REF, [{ replica: 'p1', version: 4 }]);
    expect((await store.replicas('acme'))?.[0]?.proven).toEqual({ main: 5 });
    await store.recordProven(REF, [{ replica: 'p1', version: 9 }]);
    expect((await store.replicas('acme'))?.[0]?.proven).toEqual({ main: 9 });
    await append(store, 'r2', [{ id: 'v2', entity: 'e2', entityVersion: 1 }], {
      fences: [{ ...fence, permit: 8, proven: 2 }],
    });
    expect((await store.replicas('acme'))?.[0]?.proven).toEqual({ main: 9 });
  });

  test('[S07] usage counts operations, live entities and replicas', async ({ store }) => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], { fences: [fence] });
    await append(store, 'r2', [{ id: 'v2', entity: 'e1', entityVersion: 2, previous: 1, fields: null }]);
    const usage = await store.usage('acme');
    expect(usage).toMatchObject([{ operations: 2, entities: 0, replicas: 1 }]);
    expect(usage?.[0]?.bytes).toBeGreaterThan(0);
  });

  test('[SY4] a closed store does nothing more', async ({ store }) => {
    await store.close();
    await expect((async () => store.log(REF))()).rejects.toMatchObject({ name: 'StoreFault', code: 'closed' });
  });
}
