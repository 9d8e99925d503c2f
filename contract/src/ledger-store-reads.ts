import { expect } from 'vitest';
import {
  type AppendState,
  entityKey,
  type LedgerStore,
  type OperationOutline,
} from '../../packages/ledger/src/engine/store-port.ts';
import { append, digestOf, look, make, newLog, REF, reading, wholePage, writeOf } from './ledger-store-rows.ts';
import type { StoreTest } from './ledger-store-test.ts';

/** Reading entities and pages. */
export function readContract(test: StoreTest): void {
  const threeChanges = async (store: LedgerStore): Promise<void> => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
    await append(store, 'r2', [{ id: 'x1', entity: 'other', entityVersion: 1 }]);
    await append(store, 'r3', [
      { id: 'v2', entity: 'e1', entityVersion: 2, previous: 1 },
      { id: 'v3', entity: 'e1', entityVersion: 3, previous: 3, prior: 'v2' },
    ]);
  };

  test('[LG4] events of an entity after a base come in order, the newest of them where there are many', async ({
    store,
  }) => {
    await threeChanges(store);
    const theirs = async (after: number | null, theirsMax = 100) => {
      const state = await look(store, { entities: [{ type: 'issue', id: 'e1', after, theirsMax }] });
      return state.entities
        .get(entityKey('issue', 'e1'))
        ?.events.map(({ id, entityVersion, prior }) => [id, entityVersion, prior]);
    };
    expect(await theirs(null)).toEqual([]);
    expect(await theirs(3)).toEqual([]);
    expect(await theirs(1)).toEqual([
      ['v2', 2, null],
      ['v3', 3, 'v2'],
    ]);
    expect(await theirs(0, 2)).toEqual([
      ['v2', 2, null],
      ['v3', 3, 'v2'],
    ]);
    expect(await theirs(0)).toEqual([
      ['v1', 1, null],
      ['v2', 2, null],
      ['v3', 3, 'v2'],
    ]);
  });

  test('[EV2] an absent entity keeps its version', async ({ store }) => {
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
    await append(store, 'r2', [{ id: 'v2', entity: 'e1', entityVersion: 2, previous: 1, fields: null }]);
    const found = await store.entity(REF, { type: 'issue', id: 'e1' });
    expect(found?.entity).toMatchObject({ version: 2, lastVersion: 2, fields: null });
    expect((await store.entity(REF, { type: 'issue', id: 'e9' }))?.entity).toBeUndefined();
  });

  test('[LG4] the history of an entity is told oldest first, after a version, with its operations', async ({
    store,
  }) => {
    await threeChanges(store);
    const history = async (after: number, max = 10) =>
      (await store.history(REF, { type: 'issue', id: 'e1', after, max }))?.map(
        ({ entityVersion, version, operation }) => [entityVersion, version, operation.requestId],
      );
    expect(await history(0)).toEqual([
      [1, 1, 'r1'],
      [2, 3, 'r3'],
      [3, 4, 'r3'],
    ]);
    expect(await history(1, 1)).toEqual([[2, 3, 'r3']]);
    expect(await store.history(REF, { type: 'issue', id: 'e9', after: 0, max: 1 })).toEqual([]);
  });

  test('[BS1 BS3] live entities are told in byte order, run-time types apart, absent ones not', async ({ store }) => {
    const names = ['B', 'a', 'a!', 'ab', 'b', '~'];
    for (const [at, entity] of names.toReversed().entries())
      await append(store, `r${at}`, [{ id: `v${at}`, entity, entityVersion: 1 }]);
    await append(store, 'rz', [{ id: 'vz', type: 'Zebra', entity: 'z', entityVersion: 1 }]);
    await append(store, 'rt', [{ id: 'vt', type: 'holdfast.entity-type', entity: 'note', entityVersion: 1 }]);
    await append(store, 'rd', [{ id: 'vd', entity: 'b', entityVersion: 2, fields: null }]);
    const seen: string[] = [];
    for (let after: { type: string; id: string } | null = null; ; ) {
      const rows: Awaited<ReturnType<LedgerStore['entities']>> = await store.entities(REF, {
        part: 'others',
        after,
        max: 2,
        bytesMax: 1_000_000,
      });
      expect(rows?.log.head).toBe(9);
      seen.push(...(rows?.entities ?? []).map(({ type, id }) => `${type}/${id}`));
      after = rows?.entities.at(-1) ?? null;
      if (rows?.more !== true) break;
    }
    expect(seen).toEqual(['Zebra/z', 'issue/B', 'issue/a', 'issue/a!', 'issue/ab', 'issue/~']);
    const types = await store.entities(REF, { part: 'run-time-types', after: null, max: 10, bytesMax: 1_000_000 });
    expect(types?.entities.map(({ id }) => id)).toEqual(['note']);
    const small = await store.entities(REF, { part: 'others', after: null, max: 10, bytesMax: 1 });
    expect([small?.entities.length, small?.more]).toEqual([1, true]);
  });

  test('[SC4] the definition of a run-time type is found in this log or in main', async ({ store }) => {
    const team = { workspace: 'acme', log: 'team' };
    await store.createLog(team, newLog('t'));
    const define = {
      id: 'vt',
      type: 'holdfast.entity-type',
      entity: 'note',
      entityVersion: 1,
      fields: '{"schema":{}}',
    };
    await append(store, 'rt', [define]);
    const state = await look(store, { types: ['note', 'absent'], countsTypes: true }, team);
    expect([...state.types]).toEqual([['note', '{"schema":{}}']]);
    expect(state.typeCount).toBe(0);
    expect((await look(store, { countsTypes: true })).typeCount).toBe(1);
  });

  test('[PG1] a page shows outlines of the operations that end after a version, and reads as far as was chosen', async ({
    store,
  }) => {
    await threeChanges(store);
    let outlines: readonly OperationOutline[] = [];
    const page = await store.page(REF, {
      after: 1,
      eventsMax: 1,
      choose: (log, operations) => {
        expect(log.head).toBe(4);
        outlines = operations;
        return 2;
      },
    });
    expect(outlines.map(({ firstVersion, count, requestId }) => [firstVersion, count, requestId])).toEqual([
      [2, 1, 'r2'],
    ]);
    expect(page?.events.map(({ version, draft, operation }) => [version, draft, operation.requestId])).toEqual([
      [2, '{"id":"x1"}', 'r2'],
    ]);
    expect([...(page?.chains ?? [])]).toEqual([[2, digestOf(2)]]);
    const inside = await wholePage(store, 3);
    expect(inside?.events.map(({ version, operation }) => [version, operation.firstVersion])).toEqual([[4, 3]]);
    const none = await wholePage(store, 4);
    expect([none?.events.length, none?.log.head]).toEqual([0, 4]);
  });

  test('[I26] texts come back byte for byte', async ({ store, tested }) => {
    const texts = ['"', '\\', '\u2028', '\u0001', 'é', '\u{1f600}', '\ufeff', '\uffff', "'", '%', '\u007f'];
    const draft = JSON.stringify({ id: 'v1', text: texts.join('') });
    await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1, draft, fields: draft }]);
    store = await tested.reopen();
    expect((await wholePage(store, 0))?.events[0]?.draft).toBe(draft);
    expect((await store.entity(REF, { type: 'issue', id: 'e1' }))?.entity?.fields).toBe(draft);
  });

  test('[PG2] the size of parts is remembered', async ({ store }) => {
    await store.append(REF, reading({}), (state) => {
      const { log } = state as AppendState;
      const made = make(0, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], {
        partEvents: 256,
        bytes: 9_000_000,
      });
      return { value: undefined, write: writeOf(log, [made]) };
    });
    expect((await wholePage(store, 0))?.operations[0]).toMatchObject({ partEvents: 256, bytes: 9_000_000 });
  });
}
