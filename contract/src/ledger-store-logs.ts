import { expect } from 'vitest';
import { AT, digestOf, NOTHING, newLog, REF } from './ledger-store-rows.ts';
import type { StoreTest } from './ledger-store-test.ts';

/** Workspaces and logs: made once, told apart, unknown ones undefined. */
export function logContract(test: StoreTest): void {
  test('[DG3] a new workspace has the log main, at version 0 of its first epoch', async ({ store }) => {
    expect(await store.workspaces()).toEqual([{ workspace: 'acme', createdAt: AT }]);
    expect(await store.log(REF)).toEqual({
      log: 'main',
      identity: newLog().identity,
      head: 0,
      chain: digestOf(0),
      signature: digestOf(0),
      epochs: [{ epoch: 'epoch-a', after: 0, why: 'created', at: AT }],
      state: 'open',
      movedTo: null,
      serials: {},
      createdAt: AT,
    });
  });

  test('[F92] a workspace or log that exists is not made again', async ({ store }) => {
    expect(await store.createWorkspace('acme', newLog('b'))).toBe(false);
    expect(await store.createLog({ workspace: 'acme', log: 'team' }, newLog('c'))).toBe(true);
    expect(await store.createLog({ workspace: 'acme', log: 'team' }, newLog('d'))).toBe(false);
    expect((await store.logs('acme'))?.map(({ log, identity }) => [log, identity])).toEqual([
      ['main', newLog('a').identity],
      ['team', newLog('c').identity],
    ]);
  });

  test('[LG11] what does not exist reads as undefined', async ({ store }) => {
    const absent = { workspace: 'nobody', log: 'main' };
    expect(await store.log(absent)).toBeUndefined();
    expect(await store.log({ workspace: 'acme', log: 'absent' })).toBeUndefined();
    expect(await store.logs('nobody')).toBeUndefined();
    expect(await store.replicas('nobody')).toBeUndefined();
    expect(await store.usage('nobody')).toBeUndefined();
    const seen: unknown[] = [];
    await store.append(absent, NOTHING, (state) => ({ value: seen.push(state), write: null }));
    await store.append({ workspace: 'acme', log: 'absent' }, NOTHING, (state) => ({
      value: seen.push(state),
      write: null,
    }));
    expect(seen).toEqual([undefined, undefined]);
  });

  test('[F187] a workspace may have any name', async ({ store }) => {
    const names = [
      '../../etc/passwd',
      'a/b',
      'C:\\x',
      '.',
      'ACME',
      'acme ',
      '\u00e9',
      'e\u0301',
      '%00',
      "'; DROP TABLE log;--",
    ];
    for (const workspace of names) expect(await store.createWorkspace(workspace, newLog())).toBe(true);
    expect((await store.workspaces()).map(({ workspace }) => workspace).toSorted()).toEqual(
      ['acme', ...names].toSorted(),
    );
  });
}
