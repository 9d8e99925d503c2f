import {
  canonical,
  counter,
  defineSchema,
  type EventDraft,
  entity,
  integer,
  type Json,
  type JsonObject,
  oneOf,
  type RecordedChange,
  ref,
  schemaData,
  setOf,
  text,
} from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { createSeededRandom, type SeededRandom } from '../testing/seeded-random.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { keyOf, TinyLedger } from './tiny-ledger.fixture.ts';

/**
 * Whole small worlds by chance: two replicas on real SQLite and a tiny ledger, few entities and values so that most
 * worlds clash. After every step the file is examined from scratch, and compared with the ledger's own fold.
 */
const schema = schemaData(
  defineSchema({
    project: entity({ name: text() }),
    issue: entity(
      {
        title: text(),
        status: oneOf(['todo', 'doing', 'done'], { otherwise: 'todo', onClash: 'last' }),
        labels: setOf(text()),
        votes: counter(),
        size: integer({ optional: true }),
        closed: text({ optional: true }),
        project: ref('project', { optional: true, onDelete: 'clear' }),
      },
      { rules: (r) => ({ 'done issues say when': r.when(r.is('status', 'done'), r.present('closed')) }) },
    ),
    note: entity({ body: text(), issue: ref('issue', { onDelete: 'delete-too' }) }),
    asked: entity({ body: text() }, { editedWhileDeleted: 'ask' }),
    mark: entity({ person: text(), upTo: integer({ onClash: 'max' }) }, { key: ['person'] }),
  }),
);

interface World {
  readonly random: SeededRandom;
  ledger: TinyLedger;
  readonly devices: readonly Device[];
  readonly committed: readonly Set<string>[];
  readonly trace: string[];
}

const IDS = ['a', 'b', 'c'] as const;
const pickId = (random: SeededRandom) => random.pick(IDS);

function randomChange(random: SeededRandom): RecordedChange {
  const roll = random.below(14);
  const id = pickId(random);
  switch (roll) {
    case 0:
      return { do: 'create', entity: 'project', id, fields: { name: `p${random.below(2)}` } };
    case 1:
      return { do: 'delete', entity: random.pick(['project', 'note', 'asked'] as const), id };
    case 2:
    case 3:
      return {
        do: 'create',
        entity: 'issue',
        id,
        fields: {
          title: `t${random.below(3)}`,
          status: 'todo',
          ...(random.chance(0.3) ? { project: pickId(random) } : {}),
        },
      };
    case 4:
      return { do: 'delete', entity: 'issue', id };
    case 5:
      return { do: 'create', entity: 'note', id, fields: { body: `n${random.below(2)}`, issue: pickId(random) } };
    case 6:
      return random.chance(0.5)
        ? { do: 'create', entity: 'asked', id, fields: { body: `q${random.below(2)}` } }
        : { do: 'update', entity: 'asked', id, set: { body: `q${random.below(3)}` } };
    case 7:
      return { do: 'put', entity: 'mark', id, fields: { person: id, upTo: random.below(4) } };
    case 8:
      return { do: 'restore', entity: random.pick(['issue', 'asked'] as const), id };
    default:
      return { do: 'update', entity: 'issue', id, ...randomPatch(random) } as RecordedChange;
  }
}

function randomPatch(random: SeededRandom): JsonObject & Partial<RecordedChange> {
  switch (random.below(6)) {
    case 0:
      return { set: { title: `t${random.below(3)}` } };
    case 1:
      return random.chance(0.5) ? { set: { status: 'done', closed: 'now' } } : { set: { status: 'doing' } };
    case 2:
      return { add: { labels: [`l${random.below(2)}`] } };
    case 3:
      return { remove: { labels: [`l${random.below(2)}`] } };
    case 4:
      return { inc: { votes: 1 + random.below(2) } };
    default:
      return random.chance(0.5) ? { set: { size: random.below(2) } } : { unset: ['size'] };
  }
}

function step(world: World): void {
  const { random, ledger, devices, committed, trace } = world;
  const at = random.below(devices.length);
  const device = devices[at] as Device;
  const roll = random.below(21);
  const say = (what: string) => trace.push(`${at} ${what}`);
  if (roll < 8) {
    const changes = Array.from({ length: random.chance(0.2) ? 2 : 1 }, () => randomChange(random));
    const request = device.request(changes, random.chance(0.3) ? { label: 'Edit' } : {});
    const outcome = device.state.commit(request);
    say(
      `commit ${request.actionId.slice(-6)} ${canonical(changes as unknown as Json)} ${outcome.ok ? 'ok' : outcome.fault.code}`,
    );
    if (outcome.ok) committed[at]?.add(request.actionId);
  } else if (roll < 11) {
    say('push');
    device.push(ledger);
  } else if (roll < 12) {
    say('push, results only');
    device.push(ledger, { withEvents: false });
  } else if (roll < 13) {
    say('push, answer lost');
    device.push(ledger, { isAnswered: false });
  } else if (roll < 16) {
    say('pull');
    device.pull(ledger, 1 + random.below(4));
  } else if (roll < 17) {
    say('reopen');
    device.reopen();
  } else if (roll < 18) {
    if (random.chance(0.7)) return;
    const isTorn = random.chance(0.5);
    say(`repair${isTorn ? ', somebody else writes meanwhile' : ''}`);
    const other = devices[(at + 1) % devices.length] as Device;
    device.fetch(ledger, 'repair', 1 + random.below(4), () => {
      if (isTorn && random.chance(0.5)) other.push(ledger);
      if (isTorn && random.chance(0.3)) device.pull(ledger, 2);
    });
  } else if (roll < 19) {
    const entries = device.state.desk();
    if (entries.length === 0) return;
    const entry = random.pick(entries);
    const way = random.below(4);
    const outcome =
      way === 0
        ? device.state.discard([entry.id])
        : device.state.resolve({
            ids: [entry.id],
            choice: way === 1 ? 'mine' : way === 2 ? 'theirs' : { title: 'both' },
          });
    say(`desk ${entry.kind} ${entry.actionId.slice(-6)} ${way} ${outcome.ok ? 'ok' : JSON.stringify(outcome.fault)}`);
  } else if (roll < 20) {
    if (random.chance(0.8)) return;
    let kept = random.below(ledger.head + 1);
    // Operations are whole in every backup.
    while ((ledger.events[kept]?.index ?? 0) > 0) kept -= 1;
    say(`backup of version ${kept} restored`);
    world.ledger = ledger.restoredTo(kept);
    for (const each of devices) {
      if (each.handshake(world.ledger).status !== 'history-changed') continue;
      say('lost something, and adopts');
      check(world, false);
      each.adopt(world.ledger, 2);
    }
  } else {
    const outcome = random.chance(0.7)
      ? device.state.undo('main', { skipChanged: random.chance(0.5) })
      : device.state.redo('main');
    say(`undo ${outcome.ok ? JSON.stringify(outcome.value) : outcome.fault.code}`);
  }
}

function check(world: World, isInLog = true): void {
  const { ledger, devices, committed, trace } = world;
  devices.forEach((device, at) => {
    const findings = examine(device.state.store).findings.filter(({ check: kind }) => kind !== 'permits');
    const context = () => `device ${at}: ${JSON.stringify(findings)} after:\n${trace.slice(-40).join('\n')}`;
    expect([...findings, ...wrongHolds(device)], context()).toEqual([]);
    const log = device.state.log('main');
    expect([told(device), log?.head], context()).toEqual(counted(device));
    // I07: the confirmed part is a prefix of the ledger.
    if (isInLog)
      expect([log?.chain, log?.signature], context()).toEqual([
        ledger.chains[log?.head ?? 0],
        ledger.signatures[log?.head ?? 0],
      ]);
    // I13: a batch is in the outbox or has an outcome, never neither, and an ordered one is in the log.
    for (const actionId of committed[at] ?? []) {
      const outcome = device.state.outcome(actionId);
      expect(outcome, `${actionId} ${context()}`).toBeDefined();
      // What theirs did for it is lost with theirs; theirs offer it again.
      if (outcome?.state === 'ordered' && world.ledger.epoch === 'e1')
        expect(outcome.version, `${actionId} ${context()}`).toBeLessThanOrEqual(log?.head ?? 0);
    }
  });
}

/** What the replica answers from memory, and what the file says. */
function told({ state }: Device) {
  const { unsent, sending, waiting, held, parked, lost, attention } = state.counts();
  return { unsent, sending, waiting, held, parked, lost, attention, flowing: state.flowing('main') };
}

function counted({ database }: Device) {
  const count = (table: string, where: string) =>
    database.prepare(`SELECT count(*) AS n FROM main.${table} WHERE ${where}`).get()?.['n'];
  const counts = {
    unsent: count('hf_outbox', 'true'),
    sending: count('hf_outbox', "state = 'sending'"),
    waiting: count('hf_outbox', "state = 'waiting'"),
    held: count('hf_outbox', 'held_by IS NOT NULL'),
    parked: count('hf_outbox', "state IN ('parked', 'refused')"),
    lost: count('hf_outbox', "state = 'lost'"),
    attention: count('hf_desk', "needs = 'answer'"),
    flowing: count('hf_outbox', "held_by IS NULL AND state IN ('queued', 'sending', 'waiting', 'accepted')"),
  };
  return [counts, database.prepare("SELECT head FROM main.hf_log WHERE log = 'main'").get()?.['head']];
}

/** ST2: held is what names work that is set aside or held, and nothing else. */
function wrongHolds({ database }: Device): readonly string[] {
  const rows = database
    .prepare('SELECT action_id, state, held_by, drafts, frame FROM main.hf_outbox ORDER BY seq')
    .all();
  const aside = new Set<string>();
  return rows.flatMap((row) => {
    const actionId = row['action_id'] as string;
    const drafts = JSON.parse(row['drafts'] as string) as readonly EventDraft[];
    const { needs = [] } = JSON.parse(row['frame'] as string) as { readonly needs?: readonly string[] };
    const names = [...needs, ...drafts.flatMap(({ prior }) => prior ?? [])];
    const isHeld = names.some((name) => aside.has(name));
    const isSetAside = ['parked', 'refused', 'lost'].includes(row['state'] as string);
    if (isHeld || isSetAside) for (const name of [actionId, ...drafts.map(({ id }) => id)]) aside.add(name);
    return isSetAside || isHeld === (row['held_by'] !== null) ? [] : [`${actionId} is ${isHeld ? 'not ' : ''}held`];
  });
}

/** I11 from the outside: what a quiet replica shows is the ledger's fold. */
function checkQuiet(world: World): void {
  const { ledger, devices, trace } = world;
  devices.forEach((device, at) => {
    const left = device.database
      .prepare('SELECT seq, state, held_by, judge_at, fault, drafts FROM main.hf_outbox')
      .all();
    const context = `device ${at} quiet with ${JSON.stringify(left)}, after:\n${trace.slice(-60).join('\n')}`;
    const attention = device.state.counts();
    expect([attention.unsent - attention.parked - attention.held, device.head], context).toEqual([0, ledger.head]);
    const states = ledger.fold(ledger.head);
    const seen = new Map<string, JsonObject>();
    for (const table of device.state.store.tables.values())
      for (const { id, row } of table.all('main')) seen.set(keyOf(table.model?.type ?? '', id), row.state.fields);
    expect(Object.fromEntries(seen), context).toEqual(
      Object.fromEntries([...states].map(([key, state]) => [key, state.fields])),
    );
  });
}

function run(seed: number, steps: number): void {
  const ledger = new TinyLedger(nodeDigest);
  const world: World = {
    random: createSeededRandom(seed),
    ledger,
    devices: [new Device({ schema, seed: seed * 2 }), new Device({ schema, seed: seed * 2 + 1, account: 'ben' })],
    committed: [new Set(), new Set()],
    trace: [`seed ${seed}`],
  };
  for (const device of world.devices) device.bootstrap(ledger);
  const [first] = world.devices as [Device];
  for (const id of ['a', 'b']) first.create('issue', { title: 't0', status: 'todo' }, id);
  first.create('asked', { body: 'q0' }, 'a');
  first.settle(ledger);
  try {
    for (let at = 0; at < steps; at += 1) {
      step(world);
      check(world);
    }
    // Heal and quiesce; parked work stays where it is.
    for (let round = 0; round < 3; round += 1)
      for (const device of world.devices) {
        device.settle(world.ledger);
        check(world);
      }
    checkQuiet(world);
  } catch (cause) {
    throw new Error(`${world.trace.slice(-60).join('\n')}\n${cause instanceof Error ? cause.stack : String(cause)}`);
  } finally {
    for (const device of world.devices) device.remove();
  }
}

const SEEDS = Number(process.env['HOLDFAST_WORLDS'] ?? 24);
const FROM = Number(process.env['HOLDFAST_SEED'] ?? 1);

describe('random worlds', { timeout: 600_000 }, () => {
  test('[IN2] tables are the fold of the log with pending work on top, after every step of random worlds', () => {
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) run(seed, 60);
  });
});
