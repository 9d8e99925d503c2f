import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counter, defineSchema, entity, oneOf, ref, schemaData, setOf, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { type FailHow, FailingDatabase } from '../testing/failing-database.ts';
import { type CrashScene, crashEverywhere } from './crash-kit.fixture.ts';
import { DatabaseFault } from './database-fault.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Crashes on real files (I01, I02, I03): every statement of every transaction fails once. */
const issue = {
  title: text(),
  status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
  labels: setOf(text()),
  votes: counter(),
};
const schema = schemaData(
  defineSchema({
    project: entity({ name: text() }),
    issue: entity({ ...issue, project: ref('project', { optional: true, onDelete: 'clear' }) }, { search: ['title'] }),
  }),
);
const wider = schemaData(
  defineSchema({
    project: entity({ name: text(), color: text({ default: 'blue' }) }, { index: [['color']] }),
    issue: entity(
      { ...issue, body: text({ optional: true }), project: ref('project', { optional: true, onDelete: 'clear' }) },
      { search: ['title', 'body'] },
    ),
    team: entity({ name: text() }),
  }),
);

const HOWS: readonly (readonly [string, FailHow])[] = [
  ['a statement fails', { cause: new DatabaseFault('io-error', 'the disk went away') }],
  ['the process ends before a statement', { cause: new Error('killed'), isDeadAfter: true }],
  ['the process ends after a statement', { cause: new Error('killed'), isDeadAfter: true, isRunFirst: true }],
];

const newLedger = () => new TinyLedger(nodeDigest);

/** A project with an issue in the log, and one commit on top that the log does not know. */
function withWork(device: Device, ledger: TinyLedger): void {
  device.bootstrap(ledger);
  device.create('project', { name: 'P' }, 'p1');
  device.commit([{ do: 'create', entity: 'issue', id: 'i1', fields: { title: 'A', status: 'todo', project: 'p1' } }]);
  device.settle(ledger);
  device.commit([{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'B' } }], { label: 'Rename' });
}

test.each(HOWS)('[I01 I02 CM1 F01] commit: %s, and the batch is whole or not at all', (_name, how) => {
  const ledger = newLedger();
  const report = crashEverywhere(
    {
      schema,
      prepare: (device) => withWork(device, ledger),
      steps: [
        (device) =>
          void device.commit(
            [
              { do: 'create', entity: 'issue', id: 'i2', fields: { title: 'C', status: 'todo', project: 'p1' } },
              { do: 'update', entity: 'issue', id: 'i1', inc: { votes: 2 }, add: { labels: ['x'] } },
              { do: 'delete', entity: 'project', id: 'p1' },
            ],
            { label: 'Much at once' },
          ),
      ],
    },
    how,
  );
  expect(report.problems).toEqual([]);
  expect(report.statements).toBeGreaterThan(15);
  // Only a COMMIT that ran leaves what comes after.
  expect(report.left).toEqual(how.isRunFirst === true ? [0, 1] : [0]);
});

/** Another device's work lies in the ledger: edits of what has pending work here, a creation and a deletion. */
function foreignWork(ledger: TinyLedger): void {
  const ben = new Device({ schema, account: 'ben', seed: 9 });
  ben.bootstrap(ledger);
  ben.update('issue', 'i1', { status: 'done' });
  ben.commit([{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 5 } }]);
  ben.create('issue', { title: 'Ben', status: 'todo' }, 'i9');
  ben.delete('project', 'p1');
  ben.settle(ledger);
  ben.remove();
}

test.each(HOWS)('[I01 I02 IN1 IN4 F04] ingest of a page: %s, and the page is whole or not at all', (_name, how) => {
  const ledger = newLedger();
  const report = crashEverywhere(
    {
      schema,
      prepare: (device) => {
        withWork(device, ledger);
        foreignWork(ledger);
      },
      steps: [(device) => void device.pull(ledger)],
    },
    how,
  );
  expect(report.problems).toEqual([]);
  expect(report.statements).toBeGreaterThan(20);
  expect(report.left).toEqual(how.isRunFirst === true ? [0, 1] : [0]);
});

/** Own work was sent and came back as a conflict. `theirs` decides whether it merges or waits for a person. */
function conflictScene(theirs: 'merges' | 'clashes'): CrashScene {
  const ledger = newLedger();
  let results: ReturnType<TinyLedger['push']> = [];
  return {
    schema,
    prepare: (device) => {
      withWork(device, ledger);
      device.commit([{ do: 'update', entity: 'issue', id: 'i1', set: { status: 'todo' } }]);
      device.commit([{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
      const ben = new Device({ schema, account: 'ben', seed: 9 });
      ben.bootstrap(ledger);
      if (theirs === 'clashes') ben.update('issue', 'i1', { title: 'Ben' });
      else ben.delete('issue', 'i1');
      ben.settle(ledger);
      ben.remove();
      const operations = device.take();
      results = ledger.push(operations, { actor: 'ana', replicaId: device.state.identity.replicaId });
    },
    steps: [
      (device) => device.state.recordResults('main', results, device.platform.clock.now()),
      (device) => void device.pull(ledger),
    ],
  };
}

test.each(HOWS)('[I01 I02 OB3] a conflict that a person decides: %s, and nothing is half judged', (_name, how) => {
  const report = crashEverywhere(conflictScene('clashes'), how);
  expect(report.problems).toEqual([]);
  expect(report.left).toEqual(how.isRunFirst === true ? [0, 1, 2] : [0, 1]);
});

test.each(HOWS)('[I01 I02 MG5 F05] a conflict that is rebased: %s, and nothing is half judged', (_name, how) => {
  const report = crashEverywhere(conflictScene('merges'), how);
  expect(report.problems).toEqual([]);
  expect(report.left).toEqual(how.isRunFirst === true ? [0, 1, 2] : [0, 1]);
});

test.each(HOWS)('[I01 I02 SC1 F06] a wider schema: %s, and the tables fit it or are as they were', (_name, how) => {
  const ledger = newLedger();
  const report = crashEverywhere(
    { schema, prepare: (device) => withWork(device, ledger), steps: [], opensBy: wider },
    how,
  );
  expect(report.problems).toEqual([]);
  expect(report.left).toEqual(expect.arrayContaining([0, 1]));
});

test('[CM1 I01] a full disk refuses the commit wherever it strikes, and the next one works in the same run', () => {
  const full = new DatabaseFault('storage-full', 'the disk is full');
  let isOver = false;
  for (let nth = 1; !isOver; nth += 1) {
    let failing: FailingDatabase | null = null;
    const device = new Device({
      schema,
      through: (inner) => {
        failing = new FailingDatabase(inner);
        return failing;
      },
    });
    device.bootstrap(newLedger());
    device.create('issue', { title: 'A', status: 'todo' }, 'i1');
    const heard: number[] = [];
    device.state.onChange(({ seq }) => heard.push(seq));
    (failing as FailingDatabase | null)?.arm(nth, { cause: full });
    const request = device.request([{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'B' } }], {
      label: 'Rename',
    });
    try {
      device.state.commit(request);
      isOver = true;
    } catch (cause) {
      expect(cause).toBe(full);
      expect([device.row('issue', 'i1')?.['title'], heard, device.state.counts().unsent]).toEqual(['A', [], 1]);
      expect(device.state.outcome(request.actionId)).toBeUndefined();
      expect(device.state.commit(request)).toMatchObject({ ok: true, value: { repeated: false } });
    }
    (failing as FailingDatabase | null)?.arm(Number.POSITIVE_INFINITY, { cause: full });
    expect(device.row('issue', 'i1')?.['title']).toBe('B');
    expect(examine(device.state.store).findings).toEqual([]);
    device.remove();
  }
});

const LOOP = `
import { writeSync } from 'node:fs';
import { Device } from './device.fixture.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
const device = new Device({ schema: JSON.parse(process.env.CRASH_SCHEMA), file: process.env.CRASH_FILE });
device.bootstrap(new TinyLedger(nodeDigest));
for (let at = 0; ; at += 1) {
  const id = device.create('issue', { title: String(at), status: 'todo' });
  writeSync(1, id + '\\n');
}
`;

test('[I01 I02 CM1] a process killed while it commits: every commit that it acknowledged is in the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'));
  const file = join(folder, 'replica.db');
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', LOOP], {
    cwd: import.meta.dirname,
    env: { ...process.env, CRASH_FILE: file, CRASH_SCHEMA: JSON.stringify(schema) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let complained = '';
  child.stderr.on('data', (part: Buffer) => {
    complained += String(part);
  });
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (part: Buffer) => {
      said += String(part);
      if (said.split('\n').length > 40) child.kill('SIGKILL');
    });
    child.on('close', () => resolve());
  });
  expect([child.signalCode, complained]).toEqual(['SIGKILL', '']);
  const acknowledged = said.split('\n').slice(0, -1);
  const device = new Device({ schema, file, seed: 5 });
  const present = new Set(device.rows('issue').map(({ id }) => id));
  expect(acknowledged.filter((id) => !present.has(id))).toEqual([]);
  // At most the one whose acknowledgement was cut off is there besides.
  expect(present.size - acknowledged.length).toBeLessThanOrEqual(1);
  expect(device.state.counts().unsent).toBe(present.size);
  expect(examine(device.state.store).findings).toEqual([]);
  device.remove();
  rmSync(folder, { recursive: true });
});
