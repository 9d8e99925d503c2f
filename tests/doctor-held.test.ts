import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { defineType, entity, entityNamed, text } from '@holdfast/core';
import type { Replica } from '@holdfast/replica';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '../packages/cli/src/main.ts';
import { type Bench, openBench } from '../packages/replica/src/client/client.fixture.ts';
import type { TestSchema } from '../packages/replica/src/host/host.fixture.ts';

/** A file that an earlier version left stuck: work of one log that is held by a batch of another one, which is gone. */
let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.end());

const invoice = entity({ number: text() });
const wider = entity({ number: text(), due: text({ optional: true }) });
const define = (replica: Replica<TestSchema>, type: Parameters<typeof defineType>[2]) =>
  replica.commit((tx) => defineType(tx, 'invoice', type));

async function holdfast(...args: string[]): Promise<{ readonly code: number; readonly values: readonly any[] }> {
  let out = '';
  const code = await run([...args, '--json'], {
    out: { write: (part) => (out += part) },
    err: { write: () => undefined },
  });
  const lines = out.split('\n').filter((line) => line !== '');
  return { code, values: lines.map((line) => JSON.parse(line)) };
}

/** The definition was decided by a version that left what another log made of it held: SQL does what it did. */
async function stuck(dir: string, outcomeOf: (definition: string) => object) {
  const client = bench.client('ana', { dir });
  const ana = await client.open('acme');
  const ben = await bench.client('ben').open('acme');
  for (const replica of [ana, ben]) await replica.follow('p1');
  for (const replica of [ana, ben]) await replica.settle();
  await ana.pause();
  await define(ana, wider);
  const made = ana.commit((tx) => entityNamed(tx, 'invoice').create({ number: '1' }), { log: 'p1' });
  await made;
  const theirs = define(ben, invoice);
  await theirs;
  await ben.settle();
  await ana.resume();
  expect(await ana.settle()).toMatchObject({ attention: 1 });
  await client.close();
  const file = join(dir, readdirSync(dir).find((name) => name.endsWith('.holdfast')) as string);
  const database = new DatabaseSync(file);
  const held = database.prepare('SELECT seq, action_id, held_by FROM hf_outbox WHERE held_by IS NOT NULL').get();
  expect(held?.['action_id']).toBe(made.id);
  const definition = held?.['held_by'] as string;
  for (const table of [
    'hf_aside WHERE seq = (SELECT seq FROM hf_outbox',
    'hf_desk WHERE action_id = (SELECT action_id FROM hf_outbox',
  ])
    database.prepare(`DELETE FROM ${table} WHERE action_id = ?)`).run(definition);
  database.prepare('DELETE FROM hf_outbox WHERE action_id = ?').run(definition);
  database
    .prepare("INSERT INTO hf_outcome (action_id, identity, outcome, at) VALUES (?, '', ?, 0)")
    .run(definition, JSON.stringify(outcomeOf(theirs.id)));
  database.close();
  return { dir, made: made.id };
}

test.each([
  ['given up', () => ({ state: 'discarded' })],
  ['replaced by another one', (by: string) => ({ state: 'replaced', by })],
])(
  '[ST2 ST3 SC4] what is held by a definition of another log that was %s, and is gone, is found by the doctor and let go by its repair',
  async (_what, outcomeOf) => {
    const { dir, made } = await stuck(join(bench.folder, 'stuck'), outcomeOf);
    const found = await holdfast('replica', 'doctor', '--dir', dir);
    expect(found.code).toBe(4);
    expect(found.values[0].findings).toEqual([
      {
        check: 'outbox',
        log: 'p1',
        what: expect.stringContaining(`batch ${made} is held by`),
        next: expect.stringContaining('"holdfast replica doctor --repair"'),
      },
    ]);
    const to = join(bench.folder, 'before.pack');
    const repaired = await holdfast('replica', 'doctor', '--repair', '--to', to, '--dir', dir);
    expect(repaired).toMatchObject({ code: 0, values: [{ pack: to, ended: [], released: [made] }, { findings: [] }] });

    const again = await bench.client('ana', { dir }).open('acme');
    expect(await again.settle()).toMatchObject({ settled: true, attention: 0 });
    expect((await again.write(made))?.state).toBe('ordered');
  },
);
