import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEVICE_POINTS, type DevicePoint, LEDGER_POINTS, type LedgerPoint } from './processes/die.ts';
import { type Device, type Ledger, Stage, WHOLE } from './processes/stage.ts';

/**
 * Real processes, real sockets, real files. A device, then a ledger, kills itself by SIGKILL at each named point of an
 * exchange; it is started again on its files, the world heals, and everything is counted from the files.
 *
 * Every round is the same story. Ana is offline: she votes, renames an issue twice, and makes a new one. Ben deletes the
 * issue that she renamed, and changes three others in one commit. She comes back: a page to read, a push to send, a
 * conflict to rebase (her edit brings the issue back), and somewhere in it the end of a process.
 */
const stage = new Stage();
let ledger: Ledger;
let ana: Device;
let ben: Device;
let votes = 0;
let round = 0;

beforeAll(async () => {
  ledger = await stage.startLedger();
  [ana, ben] = await Promise.all([stage.startDevice('ana'), stage.startDevice('ben')]);
  await settled();
}, 60_000);
afterAll(() => stage.close());

const settled = async (): Promise<void> => {
  for (const device of [ana, ben, ana])
    expect(await device.ask('settle', null)).toEqual({ settled: true, attention: 0 });
};

const note = async (action: Promise<string>): Promise<void> => {
  stage.committed.add(await action);
};

/** Ends with Ana offline, with work that somebody else's work is in the way of. */
async function prepare(): Promise<readonly string[]> {
  round += 1;
  const { ids, action } = await ana.ask(
    'create',
    ['a', 'b', 'c', 'd'].map((name) => `${round}${name}`),
  );
  stage.committed.add(action);
  await settled();
  await ana.ask('offline', null);
  const [voted, renamed, ...others] = ids as [string, string, ...string[]];
  for (let vote = 0; vote < 3; vote += 1) await note(ana.ask('edit', { ids: [voted], patch: { votes: { by: 1 } } }));
  votes += 3;
  await note(ana.ask('edit', { ids: [renamed], patch: { title: `${round} once` } }));
  await note(ana.ask('edit', { ids: [renamed], patch: { title: `${round} twice` } }));
  stage.committed.add((await ana.ask('create', [`${round}new`])).action);
  await note(ben.ask('remove', renamed));
  await note(ben.ask('edit', { ids: [voted, ...others], patch: { assignee: 'ben' } }));
  await ben.ask('settle', null);
  return ids;
}

/** Both see every issue once, every vote once, and the renamed issue by its last name. */
async function expectWhole(renamed: string): Promise<void> {
  expect(await stage.audit(ledger, ['ana', 'ben'])).toEqual(WHOLE);
  const [mine, theirs] = [await ana.ask('issues', null), await ben.ask('issues', null)];
  expect(mine).toEqual(theirs);
  expect(mine).toHaveLength(round * 5);
  expect(mine.reduce((sum, issue) => sum + issue.votes, 0)).toBe(votes);
  expect(mine.find(({ id }) => id === renamed)?.title).toBe(`${round} twice`);
  expect(new Set(mine.map(({ sync }) => sync))).toEqual(new Set(['synced']));
}

/** Ana's six commits, whose push is begun and has no durable answer: each is owed, and then settled (I21). */
const OWED = 6;
const OWED_BY_DEVICE: Readonly<Record<DevicePoint, number>> = {
  'before send': OWED,
  'after send': OWED,
  'after the commit and before the answer': OWED,
  'after the answer and before apply': OWED,
  'inside a page': 0,
  // The conflict is told by the answer to the push, and judged in the transaction that applies it.
  'inside a rebase': OWED,
};
const OWED_AFTER_LEDGER: Readonly<Record<LedgerPoint, number>> = {
  'before send': 0,
  'after send': OWED,
  'inside an append': OWED,
  'after the commit and before the answer': OWED,
  'after the answer and before apply': 0,
  // Of the page itself.
  'inside a page': 1,
  'inside a rebase': 0,
};

describe('a device', () => {
  test.each(DEVICE_POINTS)(
    '[I01 I03 I04 I13 I21 F01 F02 F03 F04 F05] killed %s, loses and doubles nothing',
    async (point) => {
      const [, renamed] = (await prepare()) as [string, string];
      const { obligationsOpened, unsent } = stage.facts('ana');
      await ana.ask('arm', point);
      ana.tell('online', null);
      await expect(ana.ask('settle', null)).rejects.toThrow('SIGKILL');
      expect([unsent, stage.facts('ana').unsent]).toEqual([OWED, OWED]);
      ana = await stage.startDevice('ana');
      await settled();
      await expectWhole(renamed);
      expect(stage.facts('ana').obligationsOpened - obligationsOpened).toBeGreaterThanOrEqual(OWED_BY_DEVICE[point]);
    },
  );
});

describe('a ledger', () => {
  test.each(LEDGER_POINTS)('[I01 I03 I04 I13 I21 F90 F170] killed %s, loses and doubles nothing', async (point) => {
    const [, renamed] = (await prepare()) as [string, string];
    const { obligationsOpened } = stage.facts('ana');
    await ledger.ask('arm', point);
    ana.tell('online', null);
    await expect(ledger.ask('end', null)).rejects.toThrow('SIGKILL');
    ledger = await stage.startLedger();
    await Promise.all([ana.ask('online', null), ben.ask('online', null)]);
    await settled();
    await expectWhole(renamed);
    expect(stage.facts('ana').obligationsOpened - obligationsOpened).toBeGreaterThanOrEqual(OWED_AFTER_LEDGER[point]);
  });
});
