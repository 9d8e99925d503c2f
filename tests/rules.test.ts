import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { citations, citationsOf, ROOT } from './citations.fixture.ts';

/**
 * docs/SPEC.md gives every rule an id at the start of its line: `- **LG2** …`. A test cites the rules that it proves
 * at the start of its name: `[LG2] …` or `[LG2 I04] …`. A rule that waits for a part which does not exist yet is marked
 * `(waits: …)` in the spec.
 */
const RULE = /^- \*\*([A-Z]{2}\d{1,2})\*\*(.*)$/gm;

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

/** Promises (P..), invariants (I..) and security checks (S..) are no rules; docs/FAULTS.md has the faults (F..). */
const isCatalogueId = (id: string): boolean => /^([IFS]\d{2,3}|P[1-8])$/.test(id);

const spec = (): Rule[] => rulesOf(readFileSync(join(ROOT, 'docs/SPEC.md'), 'utf8'));

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
  const tests = "test('[LG2 I04] a repeat', () => {});\nit.each([[1]])('[JS1] [F20] refuses %s', f)";
  expect(citationsOf(tests)).toEqual(['LG2', 'I04', 'JS1', 'F20']);
});
