import type { Tx } from '@holdfast/core';
import { expect, test } from 'vitest';
import { calmWorld } from './calm-world.fixture.ts';
import { cellsTaken } from './cells.ts';
import { checkQuiet } from './checkers.ts';
import { decide } from './people.ts';
import { runSeed } from './run.ts';
import { createStage } from './stage.ts';
import { summaryOf } from './summary.ts';
import type { WorldSchema } from './world.ts';

type Notes = Tx<WorldSchema>['note'];
type Change = (note: Notes, id: Parameters<Notes['delete']>[0]) => void;

test('[MG2] a merge of two people’s work is counted as one, and so is a clash', async () => {
  const { world, end } = await calmWorld();
  const { ana, ben, ...stage } = createStage(world, world.random.fork('stage'), []);
  const meanwhile = async (ofAna: Change, ofBen: Change) => {
    const id = await stage.note();
    cellsTaken();
    stage.away(ana, ben);
    stage.commit(ana, ({ note }) => ofAna(note, id as never));
    stage.commit(ben, ({ note }) => ofBen(note, id as never));
    await stage.back(ana, ben);
    await stage.rest();
    const { merged, parked } = cellsTaken();
    return { merged, parked };
  };
  const edits =
    (title: string): Change =>
    (note, id) =>
      note.update(id, { title });
  // An edit outlives a deletion: it becomes a restore, under another request id.
  expect(await meanwhile((note, id) => note.delete(id), edits('kept'))).toEqual({ merged: 1, parked: 0 });
  expect(await meanwhile(edits('of ana'), edits('of ben'))).toEqual({ merged: 0, parked: 1 });
  end();
});

test('[MG2 CM7] the summary of a seed counts what was merged, undone and made again', async () => {
  const faults = ['partition', 'people', 'lateness'] as const;
  const result = await runSeed(1, { faults, devices: 2, logs: 1, lasting: null, coda: false });
  expect(result.violations).toEqual([]);
  const { counts } = summaryOf([result]);
  expect(counts['merged']).toBeGreaterThan(0);
  expect(counts['undone']).toBeGreaterThan(0);
  expect(counts['redone']).toBeGreaterThan(0);
});

test('[CM7 I01 I13] what a person takes back is work like any other: it is accounted for, and others see it', async () => {
  const { world, end } = await calmWorld();
  const { ana, ben, ...stage } = createStage(world, world.random.fork('stage'), []);
  const id = await stage.note({ title: 'new' });
  stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'changed' }));
  await stage.rest();
  const titles: unknown[] = [];
  for (const isUndone of [true, false]) {
    const before = ana.resolved.size;
    if (isUndone) decide(world, ana);
    else ana.takeBack('redo');
    expect(ana.resolved.size).toBe(before + 1);
    await stage.rest();
    titles.push(stage.row(ben, id)?.['title']);
  }
  expect(titles).toEqual(['new', 'changed']);
  expect(await checkQuiet(world)).toEqual([]);
  end();
});
