import { type JsonObject, LIMITS, type Logger, type RecordedChange, uuidv7 } from '@holdfast/core';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeClock, nodePlatform } from '../../packages/replica/src/adapters/node/platform.ts';
import { FaultError } from '../../packages/replica/src/engine/fault-error.ts';
import { newFile, openTestHost, removeFiles } from '../../packages/replica/src/host/host.fixture.ts';
import type { Signal } from '../../packages/replica/src/host/observe.ts';
import { Link } from '../../packages/replica/src/link/link.ts';
import type { OpenChannel, RawRow, Tell } from '../../packages/replica/src/link/messages.ts';
import { applyPatch } from '../../packages/replica/src/link/row-patch.ts';

/** A host that a link leads to, wherever it runs. */
export interface LinkedHost {
  readonly openChannel: OpenChannel;
  close(): Promise<void>;
  /** Runs of live queries so far; null where nobody can look into the host. */
  readonly runs: (() => number) | null;
}

/** One transport: brings the channel of a host to a caller who may be elsewhere. `file`: null for one in memory. */
export interface LinkTransport {
  readonly name: string;
  /** Nobody can look into its hosts: `runs` is null. */
  readonly isOutOfSight?: true;
  open(file: string | null, app?: LinkedApp): LinkedHost | Promise<LinkedHost>;
}

/** What an app gives beside the schema. */
export interface LinkedApp {
  readonly token: () => Promise<string | undefined>;
  readonly logger: Logger;
  readonly observe: (signal: Signal) => void;
}

/** For a transport that carries the channel of a host of this thread. */
export function carried(carry: (host: OpenChannel) => OpenChannel): LinkTransport['open'] {
  return (file, app) => {
    const { host, runs } = openTestHost({ ...(file === null ? {} : { file }), ...app });
    // Each caller has a channel of his own.
    return { openChannel: (events) => carry(host.openChannel)(events), close: () => host.close(), runs };
  };
}

/** LK1: what holds of a link, whatever carries it. Every transport runs this. */
export function linkContract(transport: LinkTransport): void {
  describe(`a link over ${transport.name}`, () => {
    const opened: { close(): unknown }[] = [];
    afterEach(async () => {
      for (const one of opened.splice(0).reverse()) await one.close();
      removeFiles();
    });

    const hostOf = async (file: string | null = null): Promise<LinkedHost> => {
      const made = await transport.open(file);
      opened.push(made);
      return made;
    };
    const linkTo = (open: OpenChannel, reopenMs: readonly number[] = []): Link => {
      const link = new Link({ open, clock: nodeClock, reopenMs });
      opened.push(link);
      link.start();
      return link;
    };
    const linked = async () => {
      const host = await hostOf();
      return { host, link: linkTo(host.openChannel) };
    };

    test('[LK1] a commit is answered with the local sequence that includes it, and is there to be read', async () => {
      const { link } = await linked();
      const { seq } = await link.request('commit', creation('i1', { title: 'A', labels: ['x'] }), { id: newId() });
      expect(seq).toBeGreaterThan(0);
      const { columns, rows } = await link.request('query', {
        sql: 'SELECT id, done, labels FROM issue',
        parameters: [],
      });
      expect(columns).toEqual([
        { name: 'id', entity: 'issue', field: 'id' },
        { name: 'done', entity: 'issue', field: 'done', kind: 'flag' },
        { name: 'labels', entity: 'issue', field: 'labels', kind: 'setOf' },
      ]);
      expect(rows).toEqual([['i1', 0, '["x"]']]);
    });

    test('[LK1] a refusal arrives with its code and every value of it', async () => {
      const { link } = await linked();
      await link.request('commit', creation('i1', { title: 'A' }), { id: newId() });
      const change: RecordedChange = { do: 'update', entity: 'issue', id: 'i1', set: { title: 'C' } };
      const seen = [{ entity: 'issue', id: 'i1', field: 'title', value: 'B' }];
      const fault = await faultOf(link.request('commit', { ...commit([change]), seen }, { id: newId() }));
      expect(fault).toEqual({
        code: 'changed-meanwhile',
        facts: { fields: [{ entity: 'issue', id: 'i1', field: 'title', seen: 'B', now: 'A', mine: 'C' }] },
      });
    });

    test('[LK1] bytes, numbers and texts of every kind cross unchanged', async () => {
      const { link } = await linked();
      const sql = `SELECT cast('[1]' as blob) AS b, 0.1 AS f, ${2 ** 53 - 1} AS n, 'ä\u{1f600}"' AS t, NULL AS z`;
      const { rows } = await link.request('query', { sql, parameters: [] });
      expect(rows[0]?.[0]).toEqual(new Uint8Array([91, 49, 93]));
      expect(rows[0]?.slice(1)).toEqual([0.1, 2 ** 53 - 1, 'ä\u{1f600}"', null]);
    });

    test('[LK1 LQ3] a live query tells all rows once, then only what changed', async () => {
      const { link } = await linked();
      const live = watch(link, 'SELECT id, title FROM issue ORDER BY title');
      await link.request('commit', commit(['a', 'b', 'c'].map((id) => create(id, { title: id }))), { id: newId() });
      await link.request('shown', { seq: 0 });
      await link.request('commit', commit([{ do: 'update', entity: 'issue', id: 'b', set: { title: 'bb' } }]), {
        id: newId(),
      });
      await link.request('shown', { seq: 0 });
      expect(live.rows()).toEqual([
        ['a', 'a'],
        ['b', 'bb'],
        ['c', 'c'],
      ]);
      expect(live.told.at(-1)?.patch).toEqual({ length: 3, set: [[1, ['b', 'bb']]] });
    });

    test('[LK1 LQ2] what was told before an answer is known when the answer comes', async () => {
      const { link } = await linked();
      const live = watch(link, 'SELECT id FROM issue ORDER BY id');
      for (let round = 0; round < 5; round += 1) {
        const { seq } = await link.request('commit', creation(`i${round}`, { title: 'x' }), { id: newId() });
        await link.request('shown', { seq });
        expect(live.rows()).toHaveLength(round + 1);
        expect(live.told.at(-1)?.upToSeq).toBeGreaterThanOrEqual(seq);
      }
      const sequences = live.told.map(({ upToSeq }) => upToSeq);
      expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    });

    test('[LK1 SC4] types at run time are told to every caller before the answer, and to whoever comes later', async () => {
      const { host, link } = await linked();
      const typesTold = (of: Link) => {
        const told: (readonly string[])[] = [];
        of.listen({
          welcome: ({ types }) => told.push(['welcome', ...Object.keys(types)]),
          types: (types) => told.push(['types', ...Object.keys(types)]),
        });
        return told;
      };
      const other = linkTo(host.openChannel);
      const [mine, theirs] = [typesTold(link), typesTold(other)];
      await link.request('undoState', { scope: 'main' });
      const schema = { fields: { paid: { kind: 'flag' } } };
      const define: RecordedChange = { do: 'put', entity: 'holdfast.entity-type', id: 'bill', fields: { schema } };
      await link.request('commit', commit([define, { ...create('b1', { paid: true }), entity: 'bill' }]), {
        id: newId(),
      });
      expect(mine.at(-1)).toEqual(['types', 'bill']);
      const { columns, rows } = await other.request('query', { sql: 'SELECT paid FROM bill', parameters: [] });
      expect([columns, rows]).toEqual([[{ name: 'paid', entity: 'bill', field: 'paid', kind: 'flag' }], [[1]]]);
      expect(theirs.at(-1)).toEqual(['types', 'bill']);
      const late = linkTo(host.openChannel);
      const told = await new Promise<readonly string[]>((resolve) =>
        late.listen({ welcome: ({ types }) => resolve(Object.keys(types)) }),
      );
      expect(told).toEqual(['bill']);
      // A welcome that was on its way says what is so when it arrives.
      expect([mine, theirs].map((all) => all.at(-1)?.slice(1))).toEqual([['bill'], ['bill']]);
    });

    test('[LK1 LQ1] equal live queries of two callers are one run', async () => {
      const { host, link } = await linked();
      const other = linkTo(host.openChannel);
      const sql = 'SELECT id FROM issue';
      const [mine, theirs] = [watch(link, sql), watch(other, sql)];
      await Promise.all([link.request('shown', { seq: 0 }), other.request('shown', { seq: 0 })]);
      const before = host.runs?.();
      await link.request('commit', creation('i1', { title: 'A' }), { id: newId() });
      await Promise.all([link.request('shown', { seq: 0 }), other.request('shown', { seq: 0 })]);
      if (before !== undefined) expect(host.runs?.()).toBe(before + 1);
      expect([mine.rows(), theirs.rows()]).toEqual([[['i1']], [['i1']]]);
    });

    test('[LK1 LQ6] a query that fails is told so by itself; the others go on', async () => {
      const { link } = await linked();
      const bad = watch(link, 'SELECT nothing FROM nowhere');
      const good = watch(link, 'SELECT id FROM issue');
      await link.request('commit', creation('i1', { title: 'A' }), { id: newId() });
      await link.request('shown', { seq: 0 });
      expect(bad.faults.map(({ code }) => code)).toContain('query-refused');
      expect(good.rows()).toEqual([['i1']]);
      expect(await faultOf(link.request('query', { sql: 'DELETE FROM issue', parameters: [] }))).toMatchObject({
        code: 'query-refused',
      });
    });

    test('[LK1] a question that the host does not know is answered, not dropped', async () => {
      const { link } = await linked();
      expect(await faultOf(link.request('nonsense' as 'pack', {}))).toMatchObject({ code: 'malformed' });
    });

    test('[LK1] a wait ends when its caller gives up, and the link goes on', async () => {
      const { link } = await linked();
      const id = newId();
      await link.request('commit', creation('i1', { title: 'A' }), { id });
      const giveUp = new AbortController();
      const waiting = faultOf(link.request('ordered', { action: id }, { signal: giveUp.signal }));
      giveUp.abort();
      expect(await waiting).toEqual({ code: 'aborted' });
      expect(await link.request('outcome', { action: id })).toMatchObject({ state: 'pending' });
      const settling = new AbortController();
      const settled = link.request('settle', {}, { signal: settling.signal });
      settling.abort();
      expect(await settled).toMatchObject({ settled: false, attention: 0 });
    });

    test('[LK1 SY4] a host that closes tells every caller; what waits and what comes later is failed', async () => {
      const { host, link } = await linked();
      const id = newId();
      await link.request('commit', creation('i1', { title: 'A' }), { id });
      const live = watch(link, 'SELECT id FROM issue');
      const waiting = faultOf(link.request('ordered', { action: id }));
      await link.request('shown', { seq: 0 });
      await host.close();
      expect(await waiting).toEqual({ code: 'closed' });
      expect(await faultOf(link.request('desk', {}))).toEqual({ code: 'closed' });
      expect(live.faults).toEqual([{ code: 'closed' }]);
      expect(live.rows()).toEqual([['i1']]);
    });

    test.skipIf(transport.isOutOfSight)('[LK1] whoever leaves is no longer run for', async () => {
      const { host, link } = await linked();
      const other = linkTo(host.openChannel);
      watch(other, 'SELECT id FROM issue');
      await other.request('shown', { seq: 0 });
      other.close();
      // One way there and back: the host has heard it.
      await link.request('desk', {});
      await link.request('desk', {});
      const before = host.runs?.();
      await link.request('commit', creation('i1', { title: 'A' }), { id: newId() });
      await link.request('shown', { seq: 0 });
      expect(host.runs?.()).toBe(before);
    });

    test('[LK2 CM5] a commit whose answer was lost is repeated to the next host and accepted once', async () => {
      const file = newFile();
      const first = await hostOf(file);
      const cut = cuttable(first.openChannel);
      let current: OpenChannel = cut.open;
      const link = linkTo((events) => current(events), [0, 0, 0]);
      const live = watch(link, 'SELECT id, title FROM issue');
      await link.request('desk', {});

      cut.deafen();
      const id = newId();
      const committing = link.request('commit', creation('i1', { title: 'once' }), { id });
      // The first host has it, durable; its answer went nowhere.
      const witness = linkTo(first.openChannel);
      const sql = 'SELECT id FROM issue';
      await until(async () => (await witness.request('query', { sql, parameters: [] })).rows.length > 0);
      await first.close();
      const second = await hostOf(file);
      current = second.openChannel;
      cut.cut();

      expect(await committing).toMatchObject({ repeated: true });
      const { promise: unsent, resolve: tellUnsent } = Promise.withResolvers<number>();
      linkTo(second.openChannel).listen({ welcome: ({ status }) => tellUnsent(status.unsent) });
      expect(await unsent).toBe(1);
      await link.request('shown', { seq: 0 });
      expect(live.rows()).toEqual([['i1', 'once']]);
    });

    test('[LK2 CM5] the same action with other content is refused, at any host', async () => {
      const { link } = await linked();
      const id = newId();
      await link.request('commit', creation('i1', { title: 'A' }), { id });
      expect(await link.request('commit', creation('i1', { title: 'A' }), { id })).toMatchObject({ repeated: true });
      expect(await faultOf(link.request('commit', creation('i1', { title: 'B' }), { id }))).toMatchObject({
        code: 'idempotency-mismatch',
      });
    });

    test('[LK2] what a person decided is not repeated: nobody knows whether it was done', async () => {
      const file = newFile();
      const first = await hostOf(file);
      const cut = cuttable(first.openChannel);
      let current: OpenChannel = cut.open;
      const link = linkTo((events) => current(events), [0]);
      await link.request('desk', {});
      cut.deafen();
      const undoing = faultOf(link.request('undo', { scope: 'main', skipChanged: false }));
      const listing = link.request('desk', {});
      await first.close();
      current = (await hostOf(file)).openChannel;
      cut.cut();
      expect(await undoing).toEqual({ code: 'no-owner' });
      expect(await listing).toEqual([]);
    });

    test('[AC1 LK1] what the token function of the app threw is told in its words, wherever the host runs', async () => {
      const { promise: logged, resolve: log } = Promise.withResolvers<unknown>();
      const { promise: observed, resolve: observe } = Promise.withResolvers<unknown>();
      opened.push(
        await transport.open(null, {
          token: () => Promise.reject(new Error('the vault is shut')),
          logger: (...said) => log(said),
          observe: (signal) => signal.name === 'sync.token' && observe(signal),
        }),
      );
      expect(await logged).toEqual(['warn', 'The token function of the app failed.', { message: 'the vault is shut' }]);
      expect(await observed).toMatchObject({ failed: true, message: 'the vault is shut' });
    });

    test('[LK1] a request that nobody answers fails within its bound', async () => {
      const cut = cuttable((await hostOf()).openChannel);
      const timers: { readonly ms: number; readonly run: () => void }[] = [];
      const clock = {
        ...nodeClock,
        timer: (ms: number, run: () => void) => {
          timers.push({ ms, run });
          return () => undefined;
        },
      };
      const link = new Link({ open: cut.open, clock });
      opened.push(link);
      link.start();
      cut.deafen();
      const asking = faultOf(link.request('desk', {}));
      expect(timers.map(({ ms }) => ms)).toEqual([LIMITS.linkAnswerMs]);
      timers[0]?.run();
      expect(await asking).toMatchObject({ code: 'no-owner' });
    });
  });
}

const newId = (): string => uuidv7(nodePlatform.clock.now(), nodePlatform.random);
const commit = (changes: readonly RecordedChange[]) => ({ log: 'main', changes, seen: [], reads: [] });
const create = (id: string, fields: JsonObject): RecordedChange => ({ do: 'create', entity: 'issue', id, fields });
const creation = (id: string, fields: JsonObject) => commit([create(id, fields)]);

const faultOf = (promise: Promise<unknown>) =>
  promise.then(
    (value) => {
      throw new Error(`answered: ${JSON.stringify(value)}`);
    },
    (cause: unknown) => {
      if (cause instanceof FaultError) return cause.fault;
      throw cause;
    },
  );

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setImmediate(resolve));
}

let keys = 0;
function watch(link: Link, sql: string) {
  const told: Extract<Tell, { tell: 'rows' }>[] = [];
  const faults: { readonly code: string }[] = [];
  let rows: readonly RawRow[] = [];
  keys += 1;
  link.live(`key${keys}`, sql, [], {
    rows: (tell) => {
      told.push(tell);
      rows = applyPatch(tell.columns === undefined ? rows : [], tell.patch, (row) => row);
    },
    failing: (fault) => faults.push(fault),
  });
  return { told, faults, rows: () => rows };
}

/** A connection that a test breaks: first what is told goes nowhere, then the caller hears that it is cut. */
function cuttable(open: OpenChannel) {
  let isDeaf = false;
  let cut: () => void = () => undefined;
  return {
    open: ((events) => {
      const channel = open({
        tell: (tell) => {
          if (!isDeaf) events.tell(tell);
        },
        closed: () => {
          if (!isDeaf) events.closed();
        },
      });
      cut = () => {
        channel.close();
        events.closed();
      };
      return channel;
    }) satisfies OpenChannel,
    deafen: () => {
      isDeaf = true;
    },
    cut: () => cut(),
  };
}
