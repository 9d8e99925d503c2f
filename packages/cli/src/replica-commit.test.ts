import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counter, defineSchema, entity, text } from '@holdfast/core';
import { createClient, HoldfastError } from '@holdfast/replica';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toFailure } from './failure.ts';
import { run } from './main.ts';

const dir = mkdtempSync(join(tmpdir(), 'holdfast-commit-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const schema = defineSchema({
  tool: entity({ name: text({ max: 10 }), uses: counter() }),
  draft: entity({ body: text() }, { local: true }),
});

beforeAll(async () => {
  // Nobody listens there.
  await using client = createClient({ schema, dir, ledger: 'http://127.0.0.1:9', account: { id: 'ana' } });
  await using replica = await client.open('w');
  await replica.commit((tx) => tx.tool.create({ name: 'saw' }));
});

async function holdfast(...args: string[]) {
  let [out, err] = ['', ''];
  const streams = { out: { write: (part: string) => (out += part) }, err: { write: (part: string) => (err += part) } };
  const code = await run(['replica', ...args, '--dir', dir], streams);
  return { code, out, err, lines: err.trim().split('\n') };
}

test('[CM3] what cannot be written is wrong use, in three lines that name the field', async () => {
  const noJson = await holdfast('commit', 'tool', '{oops');
  expect([noJson.code, noJson.lines.length]).toEqual([2, 3]);
  expect(noJson.err).toMatch(/\[not-json\]\n.*oops|\[not-json\]\n.*position 1/);
  const wrong = await holdfast('commit', 'tool', '{"name": 5, "size": 1}');
  expect([wrong.code, wrong.lines.length]).toEqual([2, 3]);
  for (const said of ['[invalid-change]', 'tool.name: text is expected', 'tool.size: tool has no such field'])
    expect(wrong.err).toContain(said);
  // Found where the engine reads what was recorded: it has no list of fields.
  const found = toFailure(new HoldfastError({ code: 'invalid-change', facts: { path: '0.id', expected: 'an id' } }));
  expect([found.exitCode, found.message]).toEqual([2, 'Nothing was written: path 0.id, expected an id']);
  expect((await holdfast('query', 'select count(*) as n from tool', '--json')).out).toBe('{"n":1}\n');
});

test('[SY2] commit --settle says what became of the write, and status counts what is in line', async () => {
  const unsent = await holdfast('commit', 'tool', '{"name": "axe"}', '--settle');
  expect([unsent.code, unsent.out]).toEqual([5, expect.stringContaining('Not settled: ledger-unreachable.')]);
  const { out } = await holdfast('status');
  expect(out).toMatch(/2 \(2 queued, 0 sending, 0 waiting, 0 parked, 0 held, 0 lost\)/);
  expect((await holdfast('doctor')).out).toContain('Checked 1 log, 0 events, 0 entities, 2 unsent batches,');
});
