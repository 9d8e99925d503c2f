import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { uuidv7 } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { Link } from '../link/link.ts';
import { createVirtualTime } from '../testing/virtual-time.ts';
import { newFile, openTestHost, removeFiles, type TestHost } from './host.fixture.ts';

const opened: TestHost[] = [];
afterEach(async () => {
  for (const { host } of opened.splice(0)) await host.close();
  removeFiles();
});

/** A host of this file, and a commit at it. */
function hostOf(file: string) {
  const made = openTestHost({ file, database: openNodeDatabase({ file, lookEveryMs: 0 }) });
  opened.push(made);
  const link = new Link({ open: made.host.openChannel, clock: nodePlatform.clock });
  link.start();
  const id = () => uuidv7(nodePlatform.clock.now(), nodePlatform.random);
  const commit = () =>
    link.request(
      'commit',
      {
        log: 'main',
        changes: [{ do: 'create', entity: 'issue', id: id(), fields: { title: 'A' } }],
        seen: [],
        reads: [],
      },
      { id: id() },
    );
  return { host: made.host, commit };
}

test('[SY4 P8] a host that was closed says that it has stopped, why, and what was unsent', async () => {
  const { host, commit } = hostOf(newFile());
  await commit();
  await host.close();
  expect(host.status).toEqual({
    phase: 'stopped',
    reason: 'closed',
    isPaused: false,
    activity: 'idle',
    unsent: 1,
    attention: 0,
    storage: 'durable',
    host: 'here',
    logs: [expect.objectContaining({ log: 'main', phase: 'stopped' })],
  });
});

test('[I22 P8] a host that was outranked says so for good, whatever its successor writes', async () => {
  const file = newFile();
  const first = hostOf(file);
  await first.commit();
  const second = hostOf(file);
  await second.commit();
  await expect(first.commit()).rejects.toMatchObject({ fault: { code: 'outranked' } });
  expect(await first.host.ended).toMatchObject({ code: 'outranked' });
  await first.host.close();
  const said = first.host.status;
  await second.commit();
  expect(said).toMatchObject({ phase: 'stopped', reason: 'outranked' });
  expect([first.host.status, second.host.status.unsent]).toEqual([said, 3]);
});

test('[I22 LK2] a host whose loop finds that it was outranked ends, also for callers who only read', async () => {
  const file = newFile();
  const first = hostOf(file);
  const second = hostOf(file);
  await second.commit();
  first.host.sync.kick('manual');
  expect(await first.host.ended).toMatchObject({ code: 'outranked' });
});

test.each([
  ['removed', (file: string) => rmSync(file)],
  ['moved away', (file: string) => renameSync(file, `${file}.old`)],
  [
    'replaced by a copy of itself',
    (file: string) => {
      copyFileSync(file, `${file}.new`);
      renameSync(`${file}.new`, file);
    },
  ],
])(
  '[F23 F35 P1] where the file was %s no commit resolves any more, and the host ends, also for who only reads',
  async (_, harm) => {
    const file = newFile();
    const { host, commit } = hostOf(file);
    await commit();
    harm(file);
    await expect(commit()).rejects.toMatchObject({ fault: { code: 'replica-gone' } });
    expect(await host.ended).toMatchObject({ code: 'replica-gone' });
    expect(host.status).toMatchObject({ phase: 'stopped', reason: 'replica-gone' });

    const other = newFile();
    const reader = hostOf(other);
    await reader.commit();
    harm(other);
    reader.host.sync.kick('manual');
    expect(await reader.host.ended).toMatchObject({ code: 'replica-gone' });
  },
);

test('[F13 CM2] a commit that is durable resolves, whatever fails in telling of it; and it is told later', async () => {
  const time = createVirtualTime();
  const { host } = openTestHost({ platform: { ...nodePlatform, clock: time.clockFor({}) } });
  const link = new Link({ open: host.openChannel, clock: nodePlatform.clock });
  const undos: unknown[] = [];
  const rows: unknown[] = [];
  link.listen({ undo: (undo) => undos.push(undo.label) });
  link.start();
  link.live('issues', 'SELECT title FROM issue', [], {
    rows: ({ patch }) => rows.push(patch),
    failing: (fault) => rows.push(fault),
  });
  await time.advance(100);
  const { undoState } = host.state;
  const { length } = rows;
  let failures = 0;
  const failing = () => {
    failures += 1;
    throw new Error('a page that could not be read');
  };
  Object.assign(host.state, { undoState: failing });
  const { clock, random } = nodePlatform;
  const id = uuidv7(clock.now(), random);
  const commit = link.request(
    'commit',
    {
      log: 'main',
      changes: [{ do: 'create', entity: 'issue', id, fields: { title: 'A' } }],
      label: 'Make A',
      seen: [],
      reads: [],
    },
    { id: uuidv7(clock.now(), random) },
  );
  await time.advance(100);
  await expect(commit).resolves.toMatchObject({ repeated: false });
  expect(failures).toBe(1);
  expect(rows.length).toBe(length + 1);
  Object.assign(host.state, { undoState });
  expect(undos).toEqual([]);
  await time.advance(60_000);
  expect(undos).toEqual(['Make A']);
  const closed = host.close();
  await time.advance(10_000);
  await closed;
});

test('[F13] what is durable is not refused because nobody can be told of it', async () => {
  const { host } = hostOf(newFile());
  const { logs } = host.state;
  let failures = 0;
  Object.assign(host.state, {
    logs: () => {
      failures += 1;
      throw new Error('a page that could not be read');
    },
  });
  expect(() => host.state.follow('second')).not.toThrow();
  expect(failures).toBeGreaterThanOrEqual(2);
  Object.assign(host.state, { logs });
  expect(host.state.logs().map(({ log }) => log)).toEqual(['main', 'second']);
});
