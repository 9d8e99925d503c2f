import { expect, test } from 'vitest';
import type { EventDraft } from './events.ts';
import { draftOf, ModelLedger, operationOf, rebaseOn } from './model-ledger.fixture.ts';
import type { PendingOperation } from './rebase.ts';

/**
 * The law of `base` and `prior` (LG4, ST2), over every history of a small world: one entity with two registers, a replica
 * that commits, ingests, pushes and loses answers at any moment, and others who write meanwhile. Each write has its own
 * value, so that whatever replaces it unseen is found. What an author had seen is written down beside the drafts, and
 * never read by the code under test.
 */
type Register = 'x' | 'y';

/** A commit of the replica, with the truth about it. */
interface Work {
  readonly draft: EventDraft;
  readonly register: Register;
  /** The head when it was committed: every foreign write up to it was on the screen. */
  readonly saw: number;
  /** The own work on which it was made; undefined where that was in the log already, or there was none. */
  readonly after: string | undefined;
}

interface Replica {
  readonly name: string;
  readonly head: number;
  readonly pending: readonly Work[];
  readonly parked: readonly Work[];
  readonly held: readonly Work[];
}

interface World {
  readonly ledger: ModelLedger;
  /** Who merges the replicas' work: the ledger, or each author after a refusal (MG1). */
  readonly merge: 'fields' | 'author';
  readonly replicas: readonly Replica[];
}

const replicaOf = (name: string): Replica => ({ name, head: 1, pending: [], parked: [], held: [] });

const begin = (merge: World['merge'], ...names: string[]): World => {
  const ledger = new ModelLedger();
  ledger.push(operationOf(draftOf('base', { op: 'create', fields: { x: 'base', y: 'base' } }, 0)));
  return { ledger, merge, replicas: names.map(replicaOf) };
};

const withReplica = (world: World, at: number, replica: Replica): World => ({
  ...world,
  replicas: world.replicas.map((old, place) => (place === at ? replica : old)),
});

const asSent = ({ merge }: World, { draft }: Work): PendingOperation => ({ ...operationOf(draft), merge });

// ── what can happen ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Somebody who is up to date writes, and is accepted at once. */
function foreignWrite(world: World, register: Register, id: string): World {
  const ledger = new ModelLedger(world.ledger);
  const draft = draftOf(id, { op: 'update', set: { [register]: id } }, ledger.events.length);
  if (ledger.push(operationOf(draft)).code !== 'accepted') throw new Error('one who is up to date is never refused');
  return { ...world, ledger };
}

function commit(world: World, at: number, register: Register, id: string): World {
  const replica = world.replicas[at] as Replica;
  const last = replica.pending.at(-1)?.draft.id;
  const draft = draftOf(id, { op: 'update', set: { [register]: id } }, replica.head, last);
  const work: Work = { draft, register, saw: replica.head, after: last };
  return withReplica(world, at, { ...replica, pending: [...replica.pending, work] });
}

/** The replica pulls: what it finds of its own retires. */
function ingest(world: World, at: number): World {
  const replica = world.replicas[at] as Replica;
  const isIn = new Set(world.ledger.events.map(({ id }) => id));
  const pending = replica.pending.filter(({ draft }) => !isIn.has(draft.id));
  return withReplica(world, at, { ...replica, head: world.ledger.events.length, pending });
}

/** All pending work goes out, in its order. Whether an answer comes back is not known here. */
function send(world: World, at: number): { readonly world: World; readonly refused: ReadonlyMap<string, string> } {
  const ledger = new ModelLedger(world.ledger);
  const refused = new Map<string, string>();
  for (const work of (world.replicas[at] as Replica).pending) {
    // A repeat is answered from memory (LG2).
    if (ledger.events.some(({ id }) => id === work.draft.id)) continue;
    const before = ledger.events.length;
    const answer = ledger.push(asSent(world, work));
    if (answer.code === 'accepted') checkAcceptance(ledger, work, before);
    else refused.set(work.draft.id, answer.code);
  }
  return { world: { ...world, ledger }, refused };
}

/** Sends, hears the answers, ingests, and judges what was refused. What holds goes out with the next push. */
function push(world: World, at: number): World {
  const sent = send(world, at);
  const after = ingest(sent.world, at);
  const replica = after.replicas[at] as Replica;
  const first = replica.pending.findIndex(({ draft }) => sent.refused.get(draft.id) === 'version-conflict');
  if (first < 0) return after;
  const open = replica.pending.slice(first);
  const judged = rebaseOn(
    after.ledger,
    open.map((work) => asSent(world, work)),
  );
  const next = { pending: replica.pending.slice(0, first), parked: [...replica.parked], held: [...replica.held] };
  judged.forEach((result, place) => {
    const work = open[place] as Work;
    if (result.outcome === 'rebased') next.pending.push({ ...work, draft: result.events[0] as EventDraft });
    else if (result.outcome === 'unchanged') next.pending.push(work);
    else if (result.outcome === 'parked') next.parked.push(checkParked(after.ledger, work));
    else if (result.outcome === 'held') next.held.push(work);
    else throw new Error(`nothing of a write can be left: ${result.outcome}`);
  });
  return withReplica(after, at, { ...replica, ...next });
}

// ── the law ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Writes of the same register, up to some version, that the author of the work had not seen. */
const unseenBy = (ledger: ModelLedger, work: Work, until: number) =>
  ledger.events.slice(0, until).filter(({ version, id, change }) => {
    const owner = work.draft.id.slice(0, 1);
    return version > work.saw && !id.startsWith(owner) && change.op === 'update' && work.register in (change.set ?? {});
  });

function checkAcceptance(ledger: ModelLedger, work: Work, before: number): void {
  const unseen = unseenBy(ledger, work, before);
  if (unseen.length > 0) throw new Error(`${work.draft.id} replaced ${unseen.map(({ id }) => id)} unseen`);
  if (work.after !== undefined && !ledger.events.slice(0, before).some(({ id }) => id === work.after))
    throw new Error(`${work.draft.id} came before ${work.after}, on which it was made`);
}

function checkParked(ledger: ModelLedger, work: Work): Work {
  if (unseenBy(ledger, work, ledger.events.length).length === 0)
    throw new Error(`${work.draft.id} clashed with itself`);
  return work;
}

/** At rest everything is in the log, parked, or held by something parked; and everybody can be brought to rest. */
function checkAtRest(world: World): World {
  let last = world;
  for (const at of world.replicas.keys()) last = push(push(last, at), at);
  for (const { pending, parked, held } of last.replicas) {
    if (pending.length > 0) throw new Error(`${pending.map(({ draft }) => draft.id)} never settle`);
    const aside = new Set([...parked, ...held].map(({ draft }) => draft.id));
    for (const { draft, after } of held)
      if (after === undefined || !aside.has(after)) throw new Error(`${draft.id} is held by nothing`);
    for (const { id } of last.ledger.events) if (aside.has(id)) throw new Error(`${id} is both aside and in the log`);
  }
  return last;
}

// ── every history ───────────────────────────────────────────────────────────────────────────────────────────────────

interface Explored {
  worlds: number;
  parked: number;
  held: number;
}

/**
 * Walks every history: writes in any order, and before each of them any replica may have ingested, pushed, or pushed and
 * lost the answer.
 */
function explore(world: World, left: { readonly foreign: number; readonly own: readonly number[] }, counts: Explored) {
  if (left.foreign === 0 && left.own.every((n) => n === 0)) {
    const rest = checkAtRest(world);
    counts.worlds += 1;
    counts.parked += Math.min(
      1,
      rest.replicas.reduce((sum, { parked }) => sum + parked.length, 0),
    );
    counts.held += Math.min(
      1,
      rest.replicas.reduce((sum, { held }) => sum + held.length, 0),
    );
    return;
  }
  for (const moved of synced(world, 0)) {
    for (const register of ['x', 'y'] as const) {
      if (left.foreign > 0)
        explore(foreignWrite(moved, register, `f${left.foreign}`), { ...left, foreign: left.foreign - 1 }, counts);
      left.own.forEach((n, at) => {
        if (n === 0) return;
        const own = left.own.map((other, place) => (place === at ? other - 1 : other));
        explore(commit(moved, at, register, `${moved.replicas[at]?.name}${n}`), { ...left, own }, counts);
      });
    }
  }
}

/** The world as it is, and after each replica has, or has not, been in touch. */
function* synced(world: World, at: number): Generator<World> {
  const replica = world.replicas[at];
  if (replica === undefined) {
    yield world;
    return;
  }
  yield* synced(world, at + 1);
  if (replica.head < world.ledger.events.length) yield* synced(ingest(world, at), at + 1);
  if (replica.pending.length > 0) {
    yield* synced(push(world, at), at + 1);
    yield* synced(send(world, at).world, at + 1);
  }
}

const explored = (): Explored => ({ worlds: 0, parked: 0, held: 0 });

test('[LG4 ST2] one replica among others: nothing is replaced unseen, nothing clashes with itself, nothing overtakes', () => {
  const counts = explored();
  for (let foreign = 0; foreign <= 3; foreign += 1)
    for (let own = 1; own <= 3; own += 1) explore(begin('fields', 'm'), { foreign, own: [own] }, counts);
  expect(counts.worlds).toBeGreaterThan(50_000);
  expect(counts.parked).toBeGreaterThan(10_000);
  expect(counts.held).toBeGreaterThan(1_000);
});

test('[LG4 ST2 OB3] the same where the author merges, and each refusal is followed by a rebase', () => {
  const counts = explored();
  for (const [foreign, own] of [
    [3, 1],
    [3, 2],
    [2, 3],
  ] as const)
    explore(begin('author', 'm'), { foreign, own: [own] }, counts);
  expect(counts.worlds).toBeGreaterThan(20_000);
  expect(counts.parked).toBeLessThan(counts.worlds - 10_000);
});

test('[LG4 ST2] two replicas that both lag behind keep the same law', () => {
  const counts = explored();
  for (const merge of ['fields', 'author'] as const)
    for (const own of [
      [2, 2],
      [3, 1],
    ])
      explore(begin(merge, 'm', 'o'), { foreign: 0, own }, counts);
  expect(counts.worlds).toBeGreaterThan(20_000);
  expect(counts.parked).toBeGreaterThan(2_000);
});
