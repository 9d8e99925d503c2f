import { PERMIT_GRID, type PermitPlace, permitPlace } from '@holdfast/core';
import { expect, test } from 'vitest';
import { accepted, at, createWorkbench, must, pushOf, type Workbench } from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';
import type { Permit, PermitRef } from './coordinator-permit.ts';

/**
 * Every sequence of signals over one permit of one operation, with two generations: the run that issued it goes on after
 * a newer one has taken over, and says everything it can say, late, twice and in any order. The newer run asks again
 * under a permit of its own. States that are equal in the file are visited once, so the search ends when no sequence of
 * any length leads to a new one.
 */
interface World {
  readonly bench: Workbench;
  readonly older: Coordinator;
  readonly newer: Coordinator;
  readonly permit: Permit;
  isLate: boolean;
}

type Signal = (world: World) => { readonly ok: boolean } | undefined;

const rejected = { disposition: 'rejected' } as const;
/** What a local commit would write: one row per result recorded under a permit. */
const record = (world: World, ref: PermitRef, result: string): void =>
  void world.bench.database
    .prepare('INSERT INTO result SELECT ?, generation, ? FROM hf_coordinator')
    .run(ref.permitId, result);

const REPLAY = 'replay';
const replayRef = { permitId: REPLAY, log: 'main', generation: 2, hostInstance: 'two' };

const byOwner = (of: (world: World) => readonly [Coordinator, PermitRef]): Record<string, Signal> => {
  const call =
    (run: (coordinator: Coordinator, ref: PermitRef, world: World) => { readonly ok: boolean }): Signal =>
    (world) =>
      run(...of(world), world);
  return {
    start: call((coordinator, ref) => coordinator.start(ref)),
    'answer accepted': call((coordinator, ref) => coordinator.storeAnswer(ref, accepted('r1'))),
    'answer rejected': call((coordinator, ref) => coordinator.storeAnswer(ref, rejected)),
    'answer unknown': call((coordinator, ref) => coordinator.storeAnswer(ref, { disposition: 'unknown' })),
    'apply accepted': call((coordinator, ref, world) =>
      coordinator.applyAnswered(ref, accepted('r1'), () => record(world, ref, 'accepted')),
    ),
    'apply rejected': call((coordinator, ref, world) =>
      coordinator.applyAnswered(ref, rejected, () => record(world, ref, 'rejected')),
    ),
    'apply stored': call((coordinator, ref, world) =>
      coordinator.applyGroup({ permits: [ref], boundary: null }, () => {
        record(world, ref, 'accepted');
        return null;
      }),
    ),
    acknowledge: call((coordinator, ref) => coordinator.acknowledge(ref, { withoutEffect: true })),
    abandon: call((coordinator, ref) => coordinator.abandon(ref, { because: 'abandoned' })),
    'never sent': call((coordinator, ref) => coordinator.abandon(ref, { because: 'never-sent' })),
    'no answer': call((coordinator, ref) => coordinator.abandon(ref, { because: 'no-answer', reason: 'abandoned' })),
    'apply failed': call((coordinator, ref) =>
      coordinator.abandon(ref, { because: 'apply-not-committed', ...accepted('r1') }),
    ),
  };
};

const always = (run: (world: World) => unknown): Signal => {
  return (world) => void run(world);
};

const SIGNALS: Readonly<Record<string, Signal>> = {
  ...Object.fromEntries(
    Object.entries(byOwner(({ older, permit }) => [older, permit])).map(([name, run]) => [`older: ${name}`, run]),
  ),
  'the deadline passes': always((world) => {
    world.isLate = true;
    world.bench.time.monotonicMs = 1_000_000;
  }),
  'older: expire': always(({ older }) => older.expire([])),
  'older: issue again': ({ older, permit }) => older.issue(requestOf(permit.permitId, permit.ownerMode)),
  'newer: raise': always(({ newer, bench }) => {
    if (bench.rows('hf_coordinator')[0]?.['generation'] === 1) newer.raiseGeneration();
  }),
  'newer: settle': always(({ newer }) => newer.settleEarlierInstances()),
  'newer: expire': always(({ newer }) => newer.expire([])),
  'newer: issue replay': ({ newer, permit }) => newer.issue(requestOf(REPLAY, permit.ownerMode)),
  ...Object.fromEntries(
    Object.entries(byOwner(({ newer }) => [newer, replayRef]))
      .filter(([name]) => ['start', 'apply accepted', 'no answer'].includes(name))
      .map(([name, run]) => [`newer: ${name}`, run]),
  ),
  'own event confirmed': always(({ older }) => older.settleByConfirmed([{ requestId: 'r1', version: 6 }])),
};

const requestOf = (permitId: string, ownerMode: Permit['ownerMode']) => pushOf(['r1'], { permitId, ownerMode });

function createModel(ownerMode: Permit['ownerMode']): World {
  const bench = createWorkbench({ mode: ownerMode });
  bench.database.exec('CREATE TABLE result (permit TEXT, generation INTEGER, result TEXT)');
  const older = bench.host('one');
  const permit = must(older.issue(requestOf('first', ownerMode)));
  return { bench, older, newer: bench.process('two'), permit, isLate: false };
}

const results = ({ bench }: World) => bench.database.prepare('SELECT * FROM result ORDER BY 1, 2, 3').all();
const keyOf = (world: World): string => world.bench.dump() + JSON.stringify(results(world)) + String(world.isLate);

interface Seen {
  readonly key: string;
  readonly permits: readonly Record<string, unknown>[];
  readonly obligations: readonly Record<string, unknown>[];
  readonly results: readonly Record<string, unknown>[];
}

const look = (world: World): Seen => ({
  key: keyOf(world),
  permits: world.bench.rows('hf_permit'),
  obligations: world.bench.rows('hf_obligation'),
  results: results(world),
});

/** Places that the grid allows to reach from each place, in any number of steps inside one transaction. */
const REACHES = new Map(
  (Object.keys(PERMIT_GRID) as PermitPlace[]).map((from) => {
    const found = new Set([from]);
    for (const place of found)
      for (const cell of Object.values(PERMIT_GRID[place])) if (cell in PERMIT_GRID) found.add(cell as PermitPlace);
    return [from, found];
  }),
);

const placeOf = (row: Record<string, unknown>): PermitPlace =>
  permitPlace({ state: row['state'] as Permit['state'], disposition: row['disposition'] as Permit['disposition'] });

function expectLaws(before: Seen, after: Seen, made: { readonly ok: boolean } | undefined, path: string): void {
  const broken = (law: string): string => `${law}\nafter ${path}`;
  if (made?.ok === false) expect(after.key, broken('a refusal changes nothing')).toBe(before.key);
  for (const row of before.permits) {
    const now = after.permits.find((one) => one['permit_id'] === row['permit_id']);
    if (row['ended_at'] !== null) expect(now, broken('an ended permit never changes')).toEqual(row);
    expect(REACHES.get(placeOf(row)), broken('only listed transitions')).toContain(placeOf(now ?? {}));
    if (row['disposition'] === 'accepted' || row['disposition'] === 'rejected')
      expect(now?.['disposition'], broken('a definite answer never changes')).toBe(row['disposition']);
  }
  for (const row of before.obligations)
    if (row['closed_at'] !== null)
      expect(after.obligations, broken('a closed obligation never changes')).toContainEqual(row);
  for (const row of after.permits) {
    const recorded = after.results.filter((one) => one['permit'] === row['permit_id']);
    expect(recorded.length, broken('one result per permit, whatever the generation')).toBeLessThanOrEqual(1);
    for (const one of recorded) {
      expect(row['state'], broken('a recorded result is released')).toBe('released');
      expect(one['result'], broken('what is recorded is the stored answer')).toBe(row['disposition']);
      expect(
        one['result'] === 'rejected' || one['generation'] === row['generation'],
        broken('only the present generation enters a local commit'),
      ).toBe(true);
    }
    const isUnanswered = row['disposition'] === 'unknown' && row['reason'] !== 'never-sent' && row['ended_at'] !== null;
    if (row['state'] === 'abandoned-reconcile-required' || isUnanswered)
      expect(
        after.obligations.some((one) => one['identity'] === 'r1' && one['class'] === 'push'),
        broken('an unknown outcome is remembered'),
      ).toBe(true);
  }
  for (const one of after.obligations) {
    if (one['closed_at'] === null) continue;
    const isAnswered = after.permits.some((row) => row['state'] === 'released' && row['disposition'] === 'accepted');
    const evidence = String(one['evidence']);
    expect(
      evidence.includes('"kind":"confirmed"') || (evidence.includes('"kind":"replay-result"') && isAnswered),
      broken('closed only by a definite answer'),
    ).toBe(true);
  }
}

function run(ownerMode: Permit['ownerMode'], names: readonly string[]): World {
  const world = createModel(ownerMode);
  for (const name of names) (SIGNALS[name] as Signal)(world);
  return world;
}

/** F166: from wherever it stands, a newer run ends everything. */
function expectWayOut(world: World, path: string): void {
  const rescue = world.bench.host('three');
  expect(rescue.inspect().activeByState, `a way out\nafter ${path}`).toEqual({});
}

test.each(['browser-gateway', 'host'] as const)(
  '[I19 I20 I21 F166] every sequence of signals over one permit and two generations records at most one result, mode %s',
  (ownerMode) => {
    const found = new Map<string, readonly string[]>([[keyOf(createModel(ownerMode)), []]]);
    let steps = 0;
    for (const path of found.values()) {
      let world = run(ownerMode, path);
      const before = look(world);
      for (const [name, signal] of Object.entries(SIGNALS)) {
        const made = signal(world);
        steps += 1;
        if (keyOf(world) === before.key) continue;
        const after = look(world);
        const names = [...path, name];
        expectLaws(before, after, made, names.join(' → '));
        if (!found.has(after.key)) found.set(after.key, names);
        world.bench.database.close();
        world = run(ownerMode, path);
      }
      expectWayOut(world, path.join(' → '));
      world.bench.database.close();
    }
    const longest = Math.max(...[...found.values()].map((path) => path.length));
    expect([found.size > 100, longest > 5, steps > 3_000]).toEqual([true, true, true]);
  },
);

test('[I20] the search would see a permit that records twice', () => {
  const world = createModel('browser-gateway');
  const before = look(world);
  must(world.older.start(world.permit));
  record(world, world.permit, 'accepted');
  record(world, world.permit, 'accepted');
  expect(() => expectLaws(before, look(world), undefined, 'a planted defect')).toThrow('one result per permit');
  expect(at(1).version).toBe(1);
});
