import { copyFileSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { FaultError } from '../engine/fault-error.ts';
import { newFile, removeFiles, testSchema } from '../host/host.fixture.ts';
import { createClient, HoldfastError, type Replica } from '../index.ts';
import { inspectReplica } from '../inspect.ts';

afterEach(removeFiles);

const PAGE_BYTES = 4_096;
const UNSENT = 12;

const clientOf = (dir: string) =>
  createClient({ schema: testSchema, ledger: 'http://127.0.0.1:1', dir, account: { id: 'ana', token: () => 'ana' } });

/** A file with unsent work, and its bytes while nobody has it open. */
async function fileWithWork() {
  const dir = dirname(newFile());
  const replica = await clientOf(dir).open('acme');
  for (let nth = 0; nth < UNSENT; nth += 1) await replica.commit((tx) => tx.issue.create({ title: `${nth}` }));
  await replica.close();
  const file = join(dir, readdirSync(dir).find((name) => name.endsWith('.holdfast')) as string);
  return { dir, file, good: readFileSync(file) };
}

type Damage = readonly [what: string, of: (good: Buffer) => Buffer];

function damages(good: Buffer): readonly Damage[] {
  const pages = Array.from({ length: good.length / PAGE_BYTES - 1 }, (_, at): Damage => {
    const from = (at + 1) * PAGE_BYTES;
    return [`page ${at + 1}`, (bytes) => bytes.fill(0xff, from, from + 200)];
  });
  return [
    ['header', (bytes) => bytes.fill(0x55, 0, 16)],
    ['size of a page', (bytes) => bytes.fill(0x55, 16, 24)],
    ['list of tables', (bytes) => bytes.fill(0xff, 100, 300)],
    ['second half gone', (bytes) => bytes.subarray(0, bytes.length / 2)],
    ['all but the header gone', (bytes) => bytes.subarray(0, 100)],
    ['zeros', (bytes) => bytes.fill(0)],
    ...pages,
  ];
}

/** `refused`: it could not be opened. Anything but `replica-damaged` is a failure of the test. */
async function openAndCommit(dir: string): Promise<'refused' | 'opened'> {
  return opening(dir, async (replica) => {
    await replica.commit((tx) => tx.issue.create({ title: 'later' })).catch(mustSayDamaged);
  });
}

async function opening(
  dir: string,
  use: (replica: Replica<typeof testSchema>) => Promise<void> = async () => undefined,
): Promise<'refused' | 'opened'> {
  const client = clientOf(dir);
  try {
    await use(await client.open('acme'));
    return 'opened';
  } catch (cause) {
    mustSayDamaged(cause);
    return 'refused';
  } finally {
    await client.close();
  }
}

function mustSayDamaged(cause: unknown): void {
  if (!(cause instanceof HoldfastError)) throw cause;
  expect([cause.code, cause.message]).toEqual(['replica-damaged', expect.stringContaining('holdfast replica doctor')]);
}

/** What a person takes out of it, as the doctor says; null where it cannot be read. */
function packedFrom(file: string): Uint8Array | null {
  try {
    using inspection = inspectReplica(file);
    expect(inspection.examine().findings.map(({ check }) => check)).toContain('sqlite');
    return inspection.pack();
  } catch (cause) {
    if (!(cause instanceof FaultError)) throw cause;
    expect(cause.fault.code).toBe('replica-damaged');
    return null;
  }
}

// Seen to fail with open-host.ts throwing what SQLite throws, and with compose.ts starting before it looked at the status:
// then nobody let go of the lock, and every later opening was refused with `replica-in-use`. And with inspect.ts of the
// engine ending at the first page that it could not read.
test('[F28 I25] whatever of a replica file is damaged is told as damage, nothing of it is removed, and unsent work is taken out of it', async () => {
  const { dir, file, good } = await fileWithWork();
  const names = readdirSync(dir);
  let packed: Uint8Array | null = null;
  let refused = 0;
  for (const [what, of] of damages(good)) {
    for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
    const bytes = of(Buffer.from(good));
    writeFileSync(file, bytes);
    const outcome = await openAndCommit(dir);
    expect([what, readFileSync(file).length >= bytes.length]).toEqual([what, true]);
    if (outcome === 'opened') continue;
    refused += 1;
    packed ??= packedFrom(file);
  }
  expect(refused).toBeGreaterThan(6);
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
  writeFileSync(file, good);
  await using again = clientOf(dir);
  expect((await again.open('acme')).status.current.unsent).toBe(UNSENT);
  expect(readdirSync(dir)).toEqual(expect.arrayContaining(names));
  await using elsewhere = clientOf(dirname(newFile()));
  const fresh = await elsewhere.open('acme');
  expect(await fresh.unpack(packed as unknown as Uint8Array)).toEqual({ batches: UNSENT, already: 0 });
});

/** A file with its journal, as a machine that goes down leaves them: nobody closed it. */
async function fileLeftOpen() {
  const { dir, file } = await fileWithWork();
  const client = clientOf(dir);
  const replica = await client.open('acme');
  await replica.commit((tx) => tx.issue.create({ title: 'the last' }));
  const left = dirname(newFile());
  const leftFile = file.replace(dir, left);
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, leftFile + suffix);
  await client.close();
  return { dir: left, file: leftFile, good: readFileSync(leftFile), journal: readFileSync(`${leftFile}-wal`) };
}

test('[F10 F28] a file that was open when its machine went down is looked at whole before anybody works on it', async () => {
  const { dir, file, good, journal } = await fileLeftOpen();
  const opened = (bytes: Buffer, journalAt: Date): Promise<'refused' | 'opened'> => {
    rmSync(`${file}-shm`, { force: true });
    writeFileSync(file, bytes);
    writeFileSync(`${file}-wal`, journal);
    utimesSync(`${file}-wal`, journalAt, journalAt);
    return opening(dir);
  };
  const [before, since] = [new Date(0), new Date()];
  let foundByLooking = 0;
  for (const [what, of] of damages(good)) {
    const damaged = of(Buffer.from(good));
    const [after, otherwise] = [await opened(damaged, before), await opened(damaged, since)];
    if (otherwise === 'refused') expect([what, after]).toEqual([what, 'refused']);
    else if (after === 'refused') foundByLooking += 1;
  }
  expect(foundByLooking).toBeGreaterThan(6);
  expect(await opened(good, before)).toBe('opened');
  await using client = clientOf(dir);
  expect((await client.open('acme')).status.current.unsent).toBe(UNSENT + 1);
});
