import { expect, test } from 'vitest';
import { createSeededRandom } from '../../testing/seeded-random.ts';
import { createVirtualTime } from '../../testing/virtual-time.ts';
import { createLoop, type Trigger, type Verdict } from './loop.ts';

function loopOf(verdicts: (Verdict | Error)[]) {
  const time = createVirtualTime();
  const runs: { readonly atMs: number; readonly triggers: readonly Trigger[] }[] = [];
  const faults: unknown[] = [];
  let finish = () => {};
  let isHeld = false;
  const loop = createLoop({
    clock: time.clockFor({}),
    random: createSeededRandom(1),
    run: async (triggers) => {
      runs.push({ atMs: time.elapsedMs, triggers });
      if (isHeld)
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      const verdict = verdicts.shift() ?? { next: 'idle' };
      if (verdict instanceof Error) throw verdict;
      return verdict;
    },
    onFault: (error) => faults.push(error) > 0,
  });
  return {
    time,
    loop,
    runs,
    faults,
    hold: () => {
      isHeld = true;
    },
    letGo: () => {
      isHeld = false;
      finish();
    },
  };
}

test('[SY1] one run at a time, and everything that asks meanwhile gets exactly one more', async () => {
  const { time, loop, runs, hold, letGo } = loopOf([]);
  hold();
  loop.kick('start');
  await time.advance(10);
  for (const trigger of ['commit', 'socket', 'commit'] as const) loop.kick(trigger);
  await time.advance(10);
  expect(runs.length).toBe(1);
  letGo();
  await time.advance(10);
  expect(runs.map(({ triggers }) => triggers)).toEqual([['start'], ['commit', 'socket']]);
});

test('[OB4] a backoff is ended by the network or a person, never by a commit', async () => {
  const { time, loop, runs } = loopOf([{ next: 'retry', inMs: 30_000 }]);
  loop.kick('commit');
  await time.advance(1_000);
  loop.kick('commit');
  await time.advance(1_000);
  expect(runs.length).toBe(1);
  expect(loop.retryAtMs).toBe(30_000);
  loop.kick('online');
  await time.advance(1);
  expect(runs.length).toBe(2);
  expect(loop.retryAtMs).toBe(null);
});

test('[OB4] a waiting time that passes starts the next run by itself', async () => {
  const { time, loop, runs } = loopOf([
    { next: 'retry', inMs: 30_000 },
    { next: 'idle', withinMs: 5_000 },
  ]);
  loop.kick('commit');
  await time.advance(60_000);
  expect(runs.map(({ atMs }) => atMs)).toEqual([0, 30_000, 35_000]);
});

test('[F13] a run that throws is counted and started again with backoff', async () => {
  const { time, loop, runs, faults } = loopOf([new Error('one'), new Error('two')]);
  loop.kick('commit');
  await time.advance(120_000);
  expect(faults.length).toBe(2);
  expect(loop.faults).toBe(2);
  expect(runs.length).toBe(3);
  expect(runs[1]!.atMs).toBeGreaterThanOrEqual(1_000);
});

test('[SY4] paused, nothing starts, and what was asked is done on resume; stopped, nothing ever starts', async () => {
  const { time, loop, runs } = loopOf([]);
  loop.pause();
  loop.kick('commit');
  await time.advance(1_000);
  expect(runs.length).toBe(0);
  loop.resume();
  await time.advance(1_000);
  expect(runs[0]?.triggers).toContain('commit');
  loop.stop();
  loop.kick('manual');
  await time.advance(100_000);
  expect(runs.length).toBe(1);
});
