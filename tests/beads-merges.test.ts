import { type Change, canonical, type Json, type JsonObject, sameValue } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { CASES, type Case, LAST, type Merged, MODELLED, type Model, NAIVE, run } from './beads-merges.fixture.ts';

// ── what a merge must hold ──────────────────────────────────────────────────────────────────────────────────────────

/** Everything of either side that is not in the result, and everything in it that neither wrote. */
function lostIn({ entities }: Merged): string[] {
  const lost: string[] = [];
  for (const { before, first, second, after } of entities) {
    const changes = [first, second].filter((change) => change !== undefined);
    if (after === undefined) {
      if (!changes.some(({ op }) => op === 'delete')) lost.push('an entity that nobody deleted');
      if (changes.some(({ op }) => op !== 'delete')) lost.push('an edit, to a deletion');
      continue;
    }
    const written = new Set<string>();
    for (const change of changes) lost.push(...missing(change, changes, after, written));
    for (const field of new Set([...Object.keys(before ?? {}), ...Object.keys(after)]))
      if (!written.has(field) && !sameValue(before?.[field], after[field])) lost.push(`${field}, which nobody wrote`);
  }
  return lost;
}

function missing(change: Change, all: readonly Change[], after: JsonObject, written: Set<string>): string[] {
  if (change.op === 'delete') return [];
  if (change.op !== 'update') {
    const fields = change.op === 'put' ? change.set : change.fields;
    return Object.keys(fields).filter((field) => written.add(field) && !sameValue(fields[field], after[field]));
  }
  const lost: string[] = [];
  const isTheLast = (field: string) =>
    change !== all.at(-1) && LAST[field] === 'last' && change.rules?.[field] === 'last';
  const values = { ...change.set, ...Object.fromEntries((change.unset ?? []).map((field) => [field, undefined])) };
  for (const [field, value] of Object.entries(values)) {
    written.add(field);
    if (!sameValue(value, after[field]) && !isTheLast(field)) lost.push(field);
  }
  for (const [elements, isIn] of [
    [change.add ?? {}, true],
    [change.remove ?? {}, false],
  ] as const)
    for (const [field, list] of Object.entries(elements)) {
      written.add(field);
      const now = new Set(((after[field] ?? []) as Json[]).map(canonical));
      if (list.some((element) => now.has(canonical(element)) !== isIn)) lost.push(field);
    }
  return lost;
}

// ── the counts ──────────────────────────────────────────────────────────────────────────────────────────────────────

interface Counts {
  readonly asked: Readonly<Record<Case['kind'], number>>;
  readonly ofEdits: number;
  readonly ofAll: number;
}

function count(model: Model, cases: readonly Case[]): Counts {
  const asked = { both_edited: 0, both_created: 0, edit_vs_delete: 0 };
  for (const data of cases) {
    const [one, other] = [run(model, data, 'ours first'), run(model, data, 'theirs first')];
    expect(one.isAsked).toBe(other.isAsked);
    if (one.isAsked) asked[data.kind] += 1;
    else for (const merged of [one, other]) expect(lostIn(merged)).toEqual([]);
  }
  const ofEdits = asked.both_edited + asked.edit_vs_delete;
  return { asked, ofEdits, ofAll: ofEdits + asked.both_created };
}

describe.skipIf(CASES === null)('1,216 real concurrent edits', () => {
  const cases = CASES ?? [];
  const edits = cases.filter(({ kind }) => kind !== 'both_created').length;

  test('[MG2 MG3] what merges holds both sides in either order of arrival, and good modelling asks under 5 %', () => {
    expect([cases.length, edits]).toEqual([1_216, 985]);
    const naive = count(NAIVE, cases);
    const modelled = count(MODELLED, cases);
    for (const [name, { ofEdits, ofAll, asked }] of Object.entries({ naive, modelled }))
      console.log(
        `beads-merges: ${name.padEnd(8)} asks a person in ${ofEdits} of ${edits} edits (${((ofEdits / edits) * 100).toFixed(1)} %), ` +
          `${ofAll} of all ${cases.length}: ${JSON.stringify(asked)}`,
      );
    expect(naive.ofEdits / edits).toBeGreaterThan(0.85);
    expect(modelled.ofEdits / edits).toBeLessThan(0.05);
    expect(modelled.ofAll / cases.length).toBeLessThan(0.05);
  });
});
