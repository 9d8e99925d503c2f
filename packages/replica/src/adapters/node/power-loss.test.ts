import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAfterPowerLoss } from './power-loss.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-power-'));
  file = join(folder, 'a.holdfast');
});
afterEach(() => rmSync(folder, { recursive: true }));

const STARTED_MS = 1_700_000_000_000;
const journalOf = (text: string, writtenMs: number) => {
  writeFileSync(`${file}-wal`, text);
  utimesSync(`${file}-wal`, writtenMs / 1_000, writtenMs / 1_000);
};

test('[F10] a journal from before the machine started was left by a machine that went down; one of this run by a process that died', () => {
  expect(isAfterPowerLoss(file, STARTED_MS)).toBe(false);
  journalOf('frames', STARTED_MS - 1_000);
  expect(isAfterPowerLoss(file, STARTED_MS)).toBe(true);
  journalOf('frames', STARTED_MS + 1_000);
  expect(isAfterPowerLoss(file, STARTED_MS)).toBe(false);
  // Whoever closed it last has put everything into the file.
  journalOf('', STARTED_MS - 1_000);
  expect(isAfterPowerLoss(file, STARTED_MS)).toBe(false);
  journalOf('frames', Date.now());
  expect(isAfterPowerLoss(file)).toBe(false);
});
