import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MaybePromise } from '../../packages/ledger/src/engine/answer.ts';
import {
  type AppendRead,
  type AppendState,
  type AppendWrite,
  type EntityRow,
  entityKey,
  type LedgerStore,
  type LogRow,
  type NewEvent,
  type NewLog,
  type OperationOutline,
  type OperationRow,
} from '../../packages/ledger/src/engine/store-port.ts';

/** What every ledger store must do, whatever stands behind it. Run by each adapter with its own factory. */
export interface StoreUnderTest {
  readonly store: LedgerStore;
  /** Closed and opened again: what a restart sees. */
  reopen(): MaybePromise<LedgerStore>;
  dispose(): MaybePromise<void>;
}

const AT = '2026-11-30T00:00:00.000Z';
const REF = { workspace: 'acme', log: 'main' };
const digestOf = (name: string | number): string => String(name).padStart(64, '0');

export const newLog = (name = 'a'): NewLog => ({
  identity: digestOf(`1d${name}`),
  epoch: `epoch-${name}`,
  chain: digestOf(0),
  signature: digestOf(0),
  createdAt: AT,
});

const NOTHING: AppendRead = {
  versions: [],
  replicas: [],
  requestIds: [],
  actionIds: [],
  needs: [],
  eventIds: [],
  entities: [],
  types: [],
  countsTypes: false,
};

/** One operation's rows on top of a log, as the engine would write them. */
interface Made {
  readonly operation: OperationRow;
  readonly events: readonly NewEvent[];
  readonly entities: readonly EntityRow[];
}

interface MadeEvent {
  readonly id: string;
  readonly type?: string;
  readonly entity: string;
  readonly entityVersion: number;
  readonly previous?: number;
  readonly prior?: string;
  readonly draft?: string;
  readonly fields?: string | null;
  readonly assigned?: string;
}

/** As much of one as a store may read. */
const draftOf = ({ id, prior }: MadeEvent): string => JSON.stringify({ id, prior });

function make(head: number, requestId: string, events: readonly MadeEvent[], more: Partial<OperationRow> = {}): Made {
  const rows = events.map(
    (event, at): NewEvent => ({
      id: event.id,
      version: head + 1 + at,
      entityType: event.type ?? 'issue',
      entityId: event.entity,
      entityVersion: event.entityVersion,
      previous: event.previous ?? 0,
      prior: event.prior ?? null,
      draft: event.draft ?? draftOf(event),
      assigned: event.assigned ?? null,
      chain: digestOf(head + 1 + at),
    }),
  );
  const entities = new Map<string, EntityRow>();
  for (const [at, event] of events.entries())
    entities.set(entityKey(event.type ?? 'issue', event.entity), {
      type: event.type ?? 'issue',
      id: event.entity,
      version: event.entityVersion,
      lastVersion: head + 1 + at,
      fields: event.fields === undefined ? '{"title":"one"}' : event.fields,
      createdBy: 'ana',
      createdAt: AT,
      updatedBy: 'ana',
      updatedAt: AT,
      arrival: head + 1 + at,
      assigned: event.assigned ?? null,
    });
  const given = events.filter(({ assigned }) => assigned !== undefined);
  const operation: OperationRow = {
    firstVersion: head + 1,
    count: events.length,
    requestId,
    actionId: `action of ${requestId}`,
    identity: digestOf('9'),
    replicaId: 'replica',
    actor: 'ana',
    recordedAt: AT,
    origin: null,
    signature: digestOf(`5${head}`),
    bytes: 100,
    partEvents: null,
    entityVersions: events.map(({ entityVersion }) => entityVersion),
    assigned:
      given.length === 0
        ? null
        : Object.fromEntries(given.map(({ id, assigned }) => [id, JSON.parse(assigned as string)])),
    ...more,
  };
  return { operation, events: rows, entities: [...entities.values()] };
}

function writeOf(log: LogRow, made: readonly Made[], more: Partial<AppendWrite> = {}): AppendWrite {
  const events = made.flatMap((one) => one.events);
  const last = events[events.length - 1];
  return {
    head: last?.version ?? log.head,
    chain: last?.chain ?? log.chain,
    signature: made[made.length - 1]?.operation.signature ?? log.signature,
    serials: null,
    operations: made.map((one) => one.operation),
    events,
    entities: made.flatMap((one) => one.entities),
    fences: [],
    ...more,
  };
}

const reading = (read: Partial<AppendRead>): AppendRead => ({ ...NOTHING, ...read });

/** Appends one operation of events after the present head, reading what its entities need. */
const append = async (
  store: LedgerStore,
  requestId: string,
  events: readonly MadeEvent[],
  more: Partial<AppendWrite> = {},
  ref = REF,
): Promise<void> => {
  const entities = events.map(({ type, entity }) => ({ type: type ?? 'issue', id: entity, after: null, theirsMax: 0 }));
  await store.append(
    ref,
    reading({ entities, replicas: (more.fences ?? []).map(({ replica }) => replica) }),
    (state) => {
      const { log } = state as AppendState;
      return { value: undefined, write: writeOf(log, [make(log.head, requestId, events)], more) };
    },
  );
};

/** Looks, and changes nothing. */
const look = async (store: LedgerStore, read: Partial<AppendRead>, ref = REF): Promise<AppendState> => {
  const state = await store.append(ref, reading(read), (found) => ({ value: found, write: null }));
  expect(state).toBeDefined();
  return state as AppendState;
};

const wholePage = async (store: LedgerStore, after: number, to: number | null = null) =>
  store.page(REF, {
    after,
    eventsMax: 1_000,
    allChains: true,
    choose: (_log, operations) => {
      const last = operations[operations.length - 1];
      return to ?? (last === undefined ? null : last.firstVersion + last.count - 1);
    },
  });

export function ledgerStoreContract(name: string, open: () => MaybePromise<StoreUnderTest>): void {
  describe(`a ledger store: ${name}`, () => {
    let tested: StoreUnderTest;
    let store: LedgerStore;

    beforeEach(async () => {
      tested = await open();
      store = tested.store;
      await store.createWorkspace('acme', newLog());
    });
    afterEach(() => tested.dispose());

    // ── workspaces and logs ─────────────────────────────────────────────────────────────────────────────────────────

    test('[DG3] a new workspace has the log main, at version 0 of its first epoch', async () => {
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

    test('[F92] a workspace or log that exists is not made again', async () => {
      expect(await store.createWorkspace('acme', newLog('b'))).toBe(false);
      expect(await store.createLog({ workspace: 'acme', log: 'team' }, newLog('c'))).toBe(true);
      expect(await store.createLog({ workspace: 'acme', log: 'team' }, newLog('d'))).toBe(false);
      expect((await store.logs('acme'))?.map(({ log, identity }) => [log, identity])).toEqual([
        ['main', newLog('a').identity],
        ['team', newLog('c').identity],
      ]);
    });

    test('[LG11] what does not exist reads as undefined', async () => {
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

    test('[F187] a workspace may have any name', async () => {
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

    // ── append ──────────────────────────────────────────────────────────────────────────────────────────────────────

    test('[LG1] an append writes all that the verdict says', async () => {
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

    test('[LG1] a verdict without a write changes nothing', async () => {
      await store.append(REF, NOTHING, () => ({ value: 1, write: null }));
      expect((await store.log(REF))?.head).toBe(0);
    });

    test('[LG1] when judging throws, its error comes out and nothing was written', async () => {
      const stumble = async () =>
        store.append(REF, NOTHING, (): never => {
          throw new RangeError('stumbled');
        });
      await expect(stumble()).rejects.toThrow(new RangeError('stumbled'));
      expect((await store.log(REF))?.head).toBe(0);
      await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
      expect((await store.log(REF))?.head).toBe(1);
    });

    test('[LG1] a row that the log cannot hold undoes the whole group', async () => {
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

    test('[LG2 LG9] what was accepted is remembered after a restart, whole', async () => {
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

    test('[EV1 I06 F96] 64 appends at once give dense versions, each seen by the next', async () => {
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

    test('[EV1] logs of one workspace are numbered apart, and share no ids', async () => {
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

    // ── entities ────────────────────────────────────────────────────────────────────────────────────────────────────

    const threeChanges = async (): Promise<void> => {
      await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
      await append(store, 'r2', [{ id: 'x1', entity: 'other', entityVersion: 1 }]);
      await append(store, 'r3', [
        { id: 'v2', entity: 'e1', entityVersion: 2, previous: 1 },
        { id: 'v3', entity: 'e1', entityVersion: 3, previous: 3, prior: 'v2' },
      ]);
    };

    test('[LG4] events of an entity after a base come in order, the newest of them where there are many', async () => {
      await threeChanges();
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

    test('[EV2] an absent entity keeps its version', async () => {
      await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }]);
      await append(store, 'r2', [{ id: 'v2', entity: 'e1', entityVersion: 2, previous: 1, fields: null }]);
      const found = await store.entity(REF, { type: 'issue', id: 'e1' });
      expect(found?.entity).toMatchObject({ version: 2, lastVersion: 2, fields: null });
      expect((await store.entity(REF, { type: 'issue', id: 'e9' }))?.entity).toBeUndefined();
    });

    test('[LG4] the history of an entity is told oldest first, after a version, with its operations', async () => {
      await threeChanges();
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

    test('[BS1 BS3] live entities are told in byte order, run-time types apart, absent ones not', async () => {
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

    test('[SC4] the definition of a run-time type is found in this log or in main', async () => {
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

    // ── pages ───────────────────────────────────────────────────────────────────────────────────────────────────────

    test('[PG1] a page shows outlines of the operations that end after a version, and reads as far as was chosen', async () => {
      await threeChanges();
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

    test('[I26] texts come back byte for byte', async () => {
      const texts = ['"', '\\', '\u2028', '\u0001', 'é', '\u{1f600}', '\ufeff', '\uffff', "'", '%', '\u007f'];
      const draft = JSON.stringify({ id: 'v1', text: texts.join('') });
      await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1, draft, fields: draft }]);
      store = await tested.reopen();
      expect((await wholePage(store, 0))?.events[0]?.draft).toBe(draft);
      expect((await store.entity(REF, { type: 'issue', id: 'e1' }))?.entity?.fields).toBe(draft);
    });

    test('[PG2] the size of parts is remembered', async () => {
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

    // ── fences ──────────────────────────────────────────────────────────────────────────────────────────────────────

    const fence = { replica: 'p1', account: 'ana', generation: 3, instance: 'i1', permit: 7, proven: 1, at: AT };

    test('[LG8] a fence is kept with the append; permits belong to a log and a generation', async () => {
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

    test('[LG8 LG13] a handshake reads and raises fence and permits in one transaction', async () => {
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

    test('[RT7] what a replica proved to hold only grows', async () => {
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

    test('[S07] usage counts operations, live entities and replicas', async () => {
      await append(store, 'r1', [{ id: 'v1', entity: 'e1', entityVersion: 1 }], { fences: [fence] });
      await append(store, 'r2', [{ id: 'v2', entity: 'e1', entityVersion: 2, previous: 1, fields: null }]);
      const usage = await store.usage('acme');
      expect(usage).toMatchObject([{ operations: 2, entities: 0, replicas: 1 }]);
      expect(usage?.[0]?.bytes).toBeGreaterThan(0);
    });

    test('[SY4] a closed store does nothing more', async () => {
      await store.close();
      await expect((async () => store.log(REF))()).rejects.toMatchObject({ name: 'StoreFault', code: 'closed' });
    });
  });
}
