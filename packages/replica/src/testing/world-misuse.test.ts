import { defineSchema, entity, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { createWorld } from './world.ts';

const schema = defineSchema({ issue: entity({ title: text() }) });

test('[SY2] a name that no helper of a world knows is refused, and the error says which there are', async () => {
  await using world = await createWorld({ schema, seed: 30 });
  const ana = await world.device('ana');
  const typo = (name: string) => name as never;
  expect(() => ana.next(typo('lsot'))).toThrow(/mishap "lsot".*lost, answer-lost, doubled/);
  expect(() => ana.next('lost', typo('psuh'))).toThrow(/kind "psuh".*push, events/);
  expect(() => ana.crashAt(typo('nowhere'))).toThrow(/crash point "nowhere".*inside-commit, after-commit/);
  expect(() => ana.crashAt('before-send', { after: -1 })).toThrow(/after is -1/);
  expect(() => ana.block(typo('left'))).toThrow(/direction "left".*up, down/);
  expect(() => ana.unblock(typo('left'))).toThrow(/direction "left".*up, down/);
});

test.each([
  ['crash', 'no-owner'],
  ['the end of the world', 'closed'],
])('[SY2] settle that waits rejects as a client does when its device is gone: %s', async (how, code) => {
  await using world = await createWorld({ schema, seed: 31 });
  const ana = await world.device('ana');
  await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const waits = ana.replica.settle().then(
    () => null,
    (cause: unknown) => cause,
  );
  await world.advance(0);
  if (how === 'crash') await ana.crash();
  else await world[Symbol.asyncDispose]();
  expect(await waits).toMatchObject({ name: 'HoldfastError', code });
});

test('[SY2] a device that is offline is called so once', async () => {
  await using world = await createWorld({ schema, seed: 32 });
  const ana = await world.device('ana');
  await world.settle();
  ana.offline();
  await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const error = await world.run(() => false, { limitMs: 120_000 }).catch((cause: Error) => cause);
  expect(String(error)).toMatch(/ana is offline \(ledger-unreachable\), main at/);
});
