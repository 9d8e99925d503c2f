import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * docs/SPEC.md gives every rule an id at the start of its line: `- **LG2** …`. A test cites the rules that it proves
 * at the start of its name: `[LG2] …` or `[LG2 I04] …`. A rule that waits for a part which does not exist yet is marked
 * `(waits: …)` in the spec.
 */
const ROOT = resolve(import.meta.dirname, '..');
const RULE = /^- \*\*([A-Z]{2}\d{1,2})\*\*(.*)$/gm;
const CITED =
  /(?:test|it|describe)(?:\.(?:each|skipIf|runIf|concurrent|sequential)\([\s\S]{0,2000}?\))?\(\s*[`'"]\[([A-Z0-9 ,]+)\]/g;
const FOLDERS = ['packages', 'contract', 'simulation', 'scenarios', 'tests', 'docs'];

interface Rule {
  readonly id: string;
  readonly waits: boolean;
}

export function rulesOf(spec: string): Rule[] {
  return [...spec.matchAll(RULE)].map((match) => ({
    id: match[1] as string,
    waits: /\(waits: [^)]+\)/.test(match[2] as string),
  }));
}

export function citationsOf(text: string): string[] {
  return [...text.matchAll(CITED)].flatMap((match) => (match[1] as string).split(/[ ,]+/).filter(Boolean));
}

/** Promises (P..), invariants (I..), faults (F..) and security checks (S..) are numbered in docs/PROOF.md. */
const isCatalogueId = (id: string): boolean => /^([IFS]\d{2,3}|P[1-8])$/.test(id);

function testFiles(): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name) && !entry.parentPath.includes('node_modules'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  ).filter((file) => /\.(test|e2e)\.ts$/.test(file) || file.startsWith('contract/'));
}

const spec = (): Rule[] => rulesOf(readFileSync(join(ROOT, 'docs/SPEC.md'), 'utf8'));
const citations = (): Map<string, string[]> => {
  const files = new Map<string, string[]>();
  for (const file of testFiles())
    for (const id of citationsOf(readFileSync(join(ROOT, file), 'utf8')))
      files.set(id, [...(files.get(id) ?? []), file]);
  return files;
};

test('[AR3] every rule of the spec has a test that cites it', () => {
  const cited = citations();
  const rules = spec();
  expect(rules.length).toBeGreaterThan(100);
  expect(rules.filter((rule) => !rule.waits && !cited.has(rule.id)).map((rule) => rule.id)).toEqual([]);
});

test('[AR3] every rule that a test cites is in the spec', () => {
  const known = new Set(spec().map((rule) => rule.id));
  const unknown = [...citations()].filter(([id]) => !known.has(id) && !isCatalogueId(id));
  expect(unknown).toEqual([]);
});

test('[AR3] a rule that waits has no test yet, else the mark is stale', () => {
  const cited = citations();
  expect(
    spec()
      .filter((rule) => rule.waits && cited.has(rule.id))
      .map((rule) => rule.id),
  ).toEqual([]);
});

test('[AR3] the readers of this test read what they are meant to', () => {
  expect(rulesOf('- **LG2** The identity.\n- **CP1** Reserved. (waits: compaction)\n')).toEqual([
    { id: 'LG2', waits: false },
    { id: 'CP1', waits: true },
  ]);
  expect(citationsOf("test('[LG2 I04] a repeat', () => {});\nit.each([[1]])('[JS1] refuses %s', f)")).toEqual([
    'LG2',
    'I04',
    'JS1',
  ]);
});
