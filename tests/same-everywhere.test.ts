import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

/** One log, one state: whatever the language, the zone, the clock and the dice of the process that folds it. */
const PROGRAM = join(import.meta.dirname, 'processes/same-world.ts');
const SURROUNDINGS: readonly (readonly [locale: string, zone: string, random: number, clockOffMs: number])[] = [
  ['en_US.UTF-8', 'UTC', 0.1, 0],
  ['sv_SE.UTF-8', 'Pacific/Kiritimati', 0.5, 400 * 86_400_000],
  ['da_DK.UTF-8', 'America/St_Johns', 0.9, -9_000 * 86_400_000],
];

async function worldIn([locale, TZ, random, offMs]: (typeof SURROUNDINGS)[number]) {
  const env = { ...process.env, TZ, LANG: locale, LC_ALL: locale, LANGUAGE: locale.slice(0, 2) };
  const child = spawn(process.execPath, [PROGRAM, String(random), String(offMs)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  expect(code).toBe(0);
  return JSON.parse(said);
}

test('[F131 I11 DG2 F44] the same commits in other languages, zones, times and with other dice: the same events, state and rows, to the bit', async () => {
  const worlds = await Promise.all(SURROUNDINGS.map(worldIn));
  // They are other surroundings: a sort by locale, a local time or a random number would tell.
  for (const key of ['locale', 'timeZone', 'day', 'sorted', 'number', 'random'])
    expect([key, new Set(worlds.map(({ surroundings }) => JSON.stringify(surroundings[key]))).size]).toEqual([
      key,
      SURROUNDINGS.length,
    ]);
  const [first, ...others] = worlds.map(({ world }) => world);
  expect(first).toMatchObject({ problems: [], desk: 0, signature: expect.stringMatching(/^[0-9a-f]{64}$/) });
  for (const other of others) expect(other).toEqual(first);
});
