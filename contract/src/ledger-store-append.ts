import { expect } from 'vitest';
import { type AppendState, entityKey } from '../../packages/ledger/src/engine/store-port.ts';
import {
  append,
  digestOf,
  look,
  make,
  NOTHING,
  newLog,
  REF,
  reading,
  wholePage,
  writeOf,
} from './ledger-store-rows.ts';
import type { StoreTest } from './ledger-store-test.ts';

/** Appending: whole or not at all, dense, remembered. */
export function appendContract(test: StoreTest): void {
  test('[LG1] an append writes all that the verdict says', async ({ store }) => {
    await append(store, 'r1', [
      { id: 'v1', entity: 'e1', entityVersion: 1, assigned: '{"number":7}' },
      { id: 'v2', entity: 'e2', entityVersion: 1, prior: 'v1' },
    ]);
    const state = await look(store, {
      versions: [1, 2, 3],
      requestIds: ['r1', 'r2'],
      actionIds: ['action of r1'],
      eventIds: ['v1', 'v2', 'v3'],
      entities: [
        { type: 'issue', id: 'e1', after: null, theirsMax: 0 },
        { type: 'issue', id: 'e3', after: null, theirsMax: 0 },
      ],
    });
    expect(state.log).toMatchObject({ head: 2, chain: digestOf(2), signature: digestOf('50') });
    expect([...state.chains]).toEqual([
      [1, digestOf(1)],
      [2, digestOf(2)],
    ]);
    expect([...state.byRequest.keys()]).toEqual(['r1']);
    const expected = make(0, 'r1', [
      { id: 'v1', entity: 'e1', entityVersion: 1, assigned: '{"number":7}' },
      { id: 'v2', entity: 'e2', entityVersion: 1, prior: 'v1' },
    ]);
    expect(state.byRequest.get('r1')).toEqual(expected.operation);
    expect(state.byAction.get('action of r1')).toEqual(expected.operation);
    expect(state.events.get('v2')).toMatchObject({
      version: 2,
      entityId: 'e2',
      entityVersion: 1,
      prior: 'v1',
      draft: '{"id":"v2","prior":"v1"}',
    });
    expect(state.events.has('v3')).toBe(false);
    expect([...state.entities.keys()]).toEqual([entityKey('issue', 'e1')]);
    expect(state.entities.get(entityKey('issue', 'e1'))?.entity).toEqual(expected.entities[0]);
  });

  test('[LG1] a verdict without a write changes nothing', async ({ store }) => {
    await store.append(REF, NOTHING, () => ({ value: 1, write: null }));
    expect((await store.log(REF))?.head).toBe(0);
  });

  test('[LG1] when judging throws, its error comes out and nothing was written', async ({ store }) => {
    const stumble = async () =>
      store.append(REF, NOTHING, (): never => {
        throw new RangeError('stumbled');
      });
    await expect(stumble()).rejects.toThrow(new RangeError('stumbled'));
    expect((await store.log(REF))?.head).toBe(0);
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
    expect((await store.log(REF))?.head).toBe(1);
  });

  test('[LG1] a row that the log cannot hold undoes the whole group', async ({ store }) => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
    const twice = async () =>
      store.append(REF, reading({ entities: [{ type: 'issue', id: 'e2', after: null, theirsMax: 0 }] }), (state) => {
        const { log } = state as AppendState;
        const good = make(log.head, 'r2', [{ id: 'v2', entity: 'e2', entityVersion: 1 }]);
        const bad = make(log.head + 1, 'r3', [{ id: 'v1', entity: 'e3', entityVersion: 1 }]);
        return { value: undefined, write: writeOf(log, [good, bad]) };
      });
    await expect(twice()).rejects.toMatchObject({ name: 'StoreFault', isRolledBack: true });
    const state = await look(store, { eventIds: ['v2'], requestIds: ['r2', 'r3'] });
    expect(state.log.head).toBe(1);
    expect([...state.events.keys(), ...state.byRequest.keys()]).toEqual([]);
  });

  test('[LG2 LG9] what was accepted is remembered after a restart, whole', async ({ store, tested }) => {
    const events = [{ id: 'v1', entity: 'e1', entityVersion: 1, assigned: '{"number":1}' }];
    await append(store, 'r1', events, { serials: { 'issue.number': 1 } });
    const before = await look(store, { requestIds: ['r1'] });
    store = await tested.reopen();
    const after = await look(store, { requestIds: ['r1'] });
    expect(after.byRequest.get('r1')).toEqual(before.byRequest.get('r1'));
    expect(after.byRequest.get('r1')).toEqual(make(0, 'r1', events).operation);
    expect(after.log).toEqual(before.log);
    expect(after.log.serials).toEqual({ 'issue.number': 1 });
  });

  test('[EV1 I06 F96] 64 appends at once give dense versions, each seen by the next', async ({ store }) => {
    const heads: number[] = [];
    await Promise.all(
      Array.from({ length: 64 }, async (_, at) =>
        store.append(REF, NOTHING, (state) => {
          const { log } = state as AppendState;
          heads.push(log.head);
          return {
            value: undefined,
            write: writeOf(log, [make(log.head, `r${at}`, [{ id: `v${at}`, entity: `e${at}`, entityVersion: 1 }])]),
          };
        }),
      ),
    );
    expect(heads).toEqual(Array.from({ length: 64 }, (_, at) => at));
    const page = await wholePage(store, 0);
    expect(page?.events.map(({ version }) => version)).toEqual(Array.from({ length: 64 }, (_, at) => at + 1));
  });

  test('[EV1] logs of one workspace are numbered apart, and share no ids', async ({ store }) => {
    const team = { workspace: 'acme', log: 'team' };
    await store.createLog(team, newLog('t'));
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], {}, team);
    await append(store, 'r2', [{ id: 'v2', entity: 'e2', entityVersion: 1 }], {}, team);
    expect((await store.logs('acme'))?.map(({ head }) => head)).toEqual([1, 2]);
    const main = await look(store, { eventIds: ['v2'], requestIds: ['r2'], needs: ['action of r2', 'action of r9'] });
    expect([main.events.size, main.byRequest.size]).toEqual([0, 0]);
    // What an operation needs may be in another log of the workspace.
    expect([...main.accepted]).toEqual(['action of r2']);
  });
}
