import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { trackerSchema } from '../packages/cli/src/tracker-schema.ts';
import { HAS_TERMINAL, inTerminal, ran, screenOf } from './terminal.fixture.ts';

/** How far a command is, as a person at a terminal sees it: one line that is drawn over, and nothing of it is left. */
const ROOT = resolve(import.meta.dirname, '..');
const BIN = join(ROOT, 'packages/cli/bin/holdfast.js');
const SIMULATION = join(ROOT, 'simulation/src/main.ts');
const COLUMNS = 40;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-terminal-'));
const { COLUMNS: _, ...env } = process.env;
const around = { cwd: folder, env: { ...env, NO_COLOR: '1', HOLDFAST_TOKEN: 'dev' } };
let ledger: Served;

beforeAll(async () => {
  ledger = await serveLedger({
    schema: trackerSchema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens({ dev: { account: 'dev', grants: { '*': 'administrator' } } }),
    listen: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
  });
});
afterAll(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true, force: true });
});

const importing = (name: string): readonly string[] => [
  ...[process.execPath, BIN, 'import', 'github-issues', join(ROOT, 'data/tracker_issues.jsonl.gz')],
  ...['--limit', '9', '--ledger', ledger.url, '--workspace', name, '--dir', name],
];
const simulating = [process.execPath, SIMULATION, '--seeds', '3', '--steps', '20', '--workers', '1', '--once'];

/** A line as the terminal breaks it at its edge. */
const asBroken = (line: string): readonly string[] =>
  line === '' ? [''] : (line.match(new RegExp(`.{1,${COLUMNS}}`, 'g')) ?? []).map((part) => part.trimEnd());

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

test.skipIf(!HAS_TERMINAL)(
  '[P8] an import on a terminal draws over one line, however narrow, and leaves its report alone; without one it writes no control code',
  async () => {
    const [shown, piped] = await Promise.all([
      inTerminal(importing('shown'), { columns: COLUMNS, ...around }),
      ran(importing('piped'), around),
    ]);
    expect([shown.code, piped.code]).toEqual([0, 0]);
    expect(piped.out).toMatch(/^9 issues with \d+ comments imported\.\nWho opened it was left out of 9 issues: .+\n$/);
    expect(piped.out).not.toMatch(CONTROL);

    const { lines, wiped, unknown } = screenOf(shown.out, COLUMNS);
    // Nothing but the report is left, whole, and the cursor stands below it. NO_COLOR: no colour, either.
    expect([lines, unknown]).toEqual([piped.out.split('\n').flatMap(asBroken), []]);
    for (let at = 1; at <= 9; at += 1)
      expect(wiped.map(({ text }) => text)).toContainEqual(
        expect.stringMatching(new RegExp(`^${at} issues, \\d+ comm`)),
      );
    expect(wiped.at(-1)?.text).toBe('Sending …');
    expect(new Set(wiped.map(({ line }) => line))).toEqual(new Set([0]));
  },
);

test.skipIf(!HAS_TERMINAL)(
  '[P8] a simulation on a narrow terminal draws over one line, cut where it would wrap; without one it writes plain lines',
  async () => {
    const [shown, piped] = await Promise.all([
      inTerminal(simulating, { columns: COLUMNS, ...around }),
      ran(simulating, around),
    ]);
    expect([shown.code, piped.code]).toEqual([0, 0]);
    expect(piped.out).toContain('3/3 seeds, 0 failed');
    expect(piped.out).not.toMatch(CONTROL);

    const { lines, wiped, unknown } = screenOf(shown.out, COLUMNS);
    expect(unknown).toEqual([]);
    expect(wiped.at(-1)?.text).toMatch(/^3\/3 seeds, 0 failed/);
    for (const { line, text } of wiped) {
      expect(line).toBe(0);
      expect(text.length).toBeLessThan(COLUMNS);
    }
    // The whole line would not have had room.
    expect(/^3\/3 seeds.*$/m.exec(piped.out)?.[0].length).toBeGreaterThanOrEqual(COLUMNS);
    expect(lines[0]).toMatch(/^3 seeds, 0 failed/);
    expect(lines.at(-1)).toBe('');
  },
);
