import { LIMITS } from '@holdfast/core';
import { expect, test } from 'vitest';
import { calmWorld } from './calm-world.fixture.ts';
import { checkQuiet, checkStep } from './checkers.ts';
import { revoke } from './hosts.ts';
import { createStage, type StageDevice } from './stage.ts';

/** What a person can do, or an operator, so that a device looks again. The grant is there by then. */
const LOOKS_AGAIN: Readonly<Record<string, (ana: StageDevice) => void>> = {
  'nobody does anything': () => undefined,
  'she signs in again': (ana) => ana.signIn(),
  'her host starts again': (ana) => {
    ana.crash();
    ana.start();
  },
};
/** By then whoever is left alone has looked by himself. */
const BY_ITSELF_MS = 2 * LIMITS.retryMaxMs;

for (const [how, looksAgain] of Object.entries(LOOKS_AGAIN))
  test(`[LG11 I13 I30] an account that may only read is told so, keeps its work and still reads; it may write again, and ${how}: the work flows`, async () => {
    const { world, end } = await calmWorld();
    const { ana, ben, ...stage } = createStage(world, world.random.fork('stage'), []);
    const id = await stage.note({ title: 'shared' });
    expect(standing(ana)).toEqual({ phase: 'live', reason: null, unsent: 0, attention: 0 });
    revoke(world, ana);
    const actions = [
      stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'of ana' })),
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } })),
    ];
    const outcomes = () => actions.map((action) => stage.outcome(ana, action));
    // Who may not write does not get closer by asking again, nor by signing in as the same.
    for (const tries of [() => undefined, () => ana.signIn(), () => ana.engine?.sync.kick('online')]) {
      tries();
      await world.time.advance(10 * 60_000);
      expect(standing(ana)).toEqual({ phase: 'blocked', reason: 'not-allowed', unsent: 2, attention: 0 });
      expect([outcomes(), checkStep(world)]).toEqual([['pending', 'pending'], []]);
    }
    stage.commit(ben, (tx) => tx.note.update(id as never, { status: 'doing' }));
    await world.time.advance(60_000);
    expect(stage.row(ana, id)).toMatchObject({ title: 'shared', body: 'of ana', status: 'doing', votes: 1 });
    expect(stage.row(ben, id)).toMatchObject({ body: null, votes: 0 });

    revoke(world, ana);
    looksAgain(ana);
    await world.time.advance(BY_ITSELF_MS);
    expect(standing(ana)).toEqual({ phase: 'live', reason: null, unsent: 0, attention: 0 });
    expect(outcomes()).toEqual(['ordered', 'ordered']);
    expect(stage.row(ben, id)).toMatchObject({ body: 'of ana', status: 'doing', votes: 1 });
    expect(await checkQuiet(world)).toEqual([]);
    end();
  });

const standing = ({ engine }: StageDevice) => {
  const { phase, reason, unsent, attention } = engine?.sync.status ?? {};
  return { phase, reason: reason?.code ?? null, unsent, attention };
};
