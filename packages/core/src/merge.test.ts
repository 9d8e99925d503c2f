import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import type { Change, MergeRule } from './events.ts';
import { foldChange } from './fold.ts';
import type { JsonObject } from './json.ts';
import { type Judgement, judgeAgainst, judgeEvent, theirsIndex } from './merge.ts';

const update = (change: Omit<Extract<Change, { op: 'update' }>, 'op'>): Change => ({ op: 'update', ...change });
const clash = (fields: readonly string[] | 'entity', ...theirs: number[]): Judgement => ({
  verdict: 'clash',
  fields,
  theirs: theirs.length === 0 ? [0] : theirs,
});
const APPLY: Judgement = { verdict: 'apply' };
const SAME: Judgement = { verdict: 'same' };

/** The tables of 4.4, written out once more, so that no cell of merge.ts can move alone. Rows are mine, columns theirs. */
const FIELD_CELLS = `
          set     unset   inc     add     remove
  set     value   clash   clash   clash   clash
  unset   clash   both    clash   clash   clash
  inc     clash   clash   both    clash   clash
  add     clash   clash   clash   both    element
  remove  clash   clash   clash   element both`;
const ENTITY_CELLS = `
          update  put     delete  restore create
  update  fields  fields  clash   clash   fields
  put     fields  fields  clash   clash   fields
  delete  clash   clash   same    clash   clash
  restore clash   clash   clash   equal   clash
  create  clash   clash   clash   clash   equal`;

type Cell = readonly [mine: string, theirs: string, cell: string];
function cellsOf(table: string): Cell[] {
  const [head, ...rows] = table.trim().split('\n');
  const columns = (head as string).trim().split(/\s+/);
  return rows.flatMap((row) => {
    const [mine, ...cells] = row.trim().split(/\s+/);
    return cells.map((cell, at): Cell => [mine as string, columns[at] as string, cell]);
  });
}

/** A change of one kind to field `f`, in one of two variants. */
const fieldChange = (kind: string, variant: 0 | 1, rule?: string): Change => {
  const rules = rule === undefined ? {} : { rules: { f: rule as MergeRule } };
  switch (kind) {
    case 'set':
      return update({ set: { f: ['a', 'b'][variant] as string }, ...rules });
    case 'unset':
      return update({ unset: ['f'], ...rules });
    case 'inc':
      return update({ inc: { f: variant + 1 }, ...rules });
    case 'add':
      return update({ add: { f: [['a', 'b'][variant] as string] }, ...rules });
    default:
      return update({ remove: { f: [['a', 'b'][variant] as string] }, ...rules });
  }
};

describe('one field', () => {
  const cases = cellsOf(FIELD_CELLS);
  test.each(cases)('[MG1] %s against %s of the same field: %s', (mine, theirs, cell) => {
    const same = judgeEvent(fieldChange(mine, 0), [fieldChange(theirs, 0)]);
    const other = judgeEvent(fieldChange(mine, 0), [fieldChange(theirs, 1)]);
    expect(same).toEqual(cell === 'both' || cell === 'value' ? APPLY : clash(['f']));
    expect(other).toEqual(cell === 'both' || cell === 'element' ? APPLY : clash(['f']));
  });

  test.each(cases)('[MG1] %s against %s of another field: both', (mine, theirs) => {
    const their = JSON.parse(JSON.stringify(fieldChange(theirs, 1)).replaceAll('"f"', '"g"'));
    expect(judgeEvent(fieldChange(mine, 0), [their])).toEqual(APPLY);
  });

  test.each(cases)(
    '[MG1] a known rule of both lets sets and unsets stand, and nothing else: %s against %s',
    (mine, theirs, cell) => {
      const isRuled = ['set', 'unset'].includes(mine) && ['set', 'unset'].includes(theirs);
      const bare = cell === 'both' || cell === 'element';
      for (const rule of ['last', 'max', 'min'])
        expect(judgeEvent(fieldChange(mine, 0, rule), [fieldChange(theirs, 1, rule)])).toEqual(
          isRuled || bare ? APPLY : clash(['f']),
        );
    },
  );

  test('[MG1] an unknown rule, a rule of one side, and two rules ask', () => {
    const judged = (mine?: string, theirs?: string) =>
      judgeEvent(fieldChange('set', 0, mine), [fieldChange('set', 1, theirs)]);
    expect(judged('sum', 'sum')).toEqual(clash(['f']));
    expect(judged('last', undefined)).toEqual(clash(['f']));
    expect(judged(undefined, 'last')).toEqual(clash(['f']));
    expect(judged('max', 'min')).toEqual(clash(['f']));
    expect(judgeEvent(fieldChange('set', 0, 'toString'), [fieldChange('set', 1, 'toString')])).toEqual(clash(['f']));
    const named = update({ set: { toString: 1 }, rules: {} });
    expect(judgeEvent(named, [update({ set: { toString: 2 }, rules: {} })])).toEqual(clash(['toString']));
  });

  test('[MG1] equal values are equal by their canonical bytes', () => {
    const mine = update({ set: { f: { a: 1, b: [2] } } });
    expect(judgeEvent(mine, [update({ set: { f: { b: [2], a: 1 } } })])).toEqual(APPLY);
    expect(judgeEvent(mine, [update({ set: { f: { a: 1, b: ['2'] } } })])).toEqual(clash(['f']));
  });
});

describe('whole entity', () => {
  const wholeChange = (op: string, variant: 0 | 1): Change => {
    const fields: JsonObject = { f: ['a', 'b'][variant] as string };
    if (op === 'update') return update({ set: fields });
    if (op === 'put') return { op, set: fields };
    return op === 'delete' ? { op } : { op: op as 'create', fields };
  };
  test.each(cellsOf(ENTITY_CELLS))('[MG1] %s against %s: %s', (mine, theirs, cell) => {
    const equal = judgeEvent(wholeChange(mine, 0), [wholeChange(theirs, 0)]);
    const other = judgeEvent(wholeChange(mine, 0), [wholeChange(theirs, 1)]);
    const expected: Record<string, [Judgement, Judgement]> = {
      fields: [APPLY, clash(['f'])],
      clash: [clash('entity'), clash('entity')],
      same: [SAME, SAME],
      equal: [SAME, clash('entity')],
    };
    expect([equal, other]).toEqual(expected[cell]);
  });

  test('[MG1] nothing of theirs: apply, whatever mine is', () => {
    for (const op of ['update', 'put', 'delete', 'restore', 'create'])
      expect(judgeEvent(wholeChange(op, 0), [])).toEqual(APPLY);
  });

  test('[MG1] equal creates count as one: what they did later does not clash with my create', () => {
    const mine = wholeChange('create', 0);
    const later = [update({ set: { f: 'z' } }), { op: 'delete' } as const, wholeChange('restore', 1)];
    expect(judgeEvent(mine, [wholeChange('create', 0), ...later])).toEqual(SAME);
    expect(judgeEvent(mine, [wholeChange('create', 1), ...later])).toEqual(clash('entity', 0, 1, 2, 3));
  });

  test('[MG1] an equal restore or delete is the same only if they did nothing else', () => {
    expect(judgeEvent(wholeChange('restore', 0), [wholeChange('restore', 0), wholeChange('restore', 0)])).toEqual(SAME);
    expect(judgeEvent(wholeChange('restore', 0), [wholeChange('restore', 0), wholeChange('update', 0)])).toEqual(
      clash('entity', 1),
    );
    expect(judgeEvent({ op: 'delete' }, [{ op: 'delete' }, wholeChange('restore', 0)])).toEqual(clash('entity', 1));
  });

  test('[MG1] put counts as set, with its rules', () => {
    const put = (f: string, rule?: MergeRule): Change => ({
      op: 'put',
      set: { f },
      ...(rule && { rules: { f: rule } }),
    });
    expect(judgeEvent(put('a', 'last'), [put('b', 'last')])).toEqual(APPLY);
    expect(judgeEvent(put('a', 'last'), [put('b')])).toEqual(clash(['f']));
    expect(judgeEvent(put('a', 'last'), [wholeChange('create', 1)])).toEqual(clash(['f']));
    expect(judgeEvent(put('a'), [update({ inc: { f: 1 } })])).toEqual(clash(['f']));
    expect(judgeEvent(update({ unset: ['f'] }), [put('a')])).toEqual(clash(['f']));
  });
});

test('[MG1] mine is checked against every event of theirs, and all that clash are named', () => {
  const mine = update({ set: { a: 1, b: 1 }, inc: { n: 1 }, add: { s: ['x'] } });
  const theirs = [
    update({ set: { b: 2 } }),
    update({ set: { c: 1 } }),
    update({ inc: { n: 5 } }),
    update({ set: { a: 2 } }),
    update({ set: { a: 1 } }),
    update({ remove: { s: ['x', 'y'] } }),
    update({ set: { b: 2 } }),
  ];
  expect(judgeEvent(mine, theirs)).toEqual(clash(['a', 'b', 's'], 0, 3, 5, 6));
  expect(judgeEvent(mine, [...theirs, { op: 'delete' }])).toEqual(clash('entity', 7));
});

test('[MG1] erased bytes clash, since nobody can say what they did', () => {
  expect(judgeEvent(update({ set: { f: 1 } }), [update({ set: { g: 1 } }), null])).toEqual(clash('entity', 1));
  expect(judgeEvent({ op: 'delete' }, [null])).toEqual(clash('entity'));
});

// ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const anyChange: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record(
      {
        op: fc.constant('update' as const),
        set: fc.dictionary(fc.constantFrom('x', 'y'), fc.integer({ min: 0, max: 1 }), { maxKeys: 2 }),
        unset: fc.uniqueArray(fc.constantFrom('p', 'q'), { maxLength: 1 }),
        inc: fc.dictionary(fc.constant('n'), fc.integer({ min: -2, max: 2 })),
        add: fc.dictionary(fc.constant('s'), fc.uniqueArray(fc.constantFrom('a', 'b'), { maxLength: 2 })),
        remove: fc.dictionary(fc.constant('s'), fc.uniqueArray(fc.constantFrom('c', 'd'), { maxLength: 2 })),
        rules: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom<MergeRule>('max', 'min')),
      },
      { requiredKeys: ['op'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('put' as const),
      set: fc.dictionary(fc.constantFrom('x', 'y'), fc.integer({ min: 0, max: 1 })),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ op: 'delete' } as const) },
);
const base: fc.Arbitrary<JsonObject> = fc.record(
  {
    x: fc.integer({ min: 0, max: 2 }),
    y: fc.integer({ min: 0, max: 2 }),
    n: fc.integer(),
    p: fc.constant(1),
    q: fc.constant(1),
    s: fc.constant(['a', 'c', 'd']),
  },
  { requiredKeys: [] },
);

test('[MG1] a clash is a clash from either side', () => {
  fc.assert(
    fc.property(anyChange, anyChange, (mine, theirs) => {
      const there = judgeEvent(theirs, [mine]).verdict;
      expect(judgeEvent(mine, [theirs]).verdict).toBe(there);
    }),
    { numRuns: 3_000 },
  );
});

test('[MG1] judging one by one and judging against an index agree', () => {
  fc.assert(
    fc.property(anyChange, fc.array(anyChange, { maxLength: 5 }), (mine, theirs) => {
      const whole = judgeAgainst(mine, theirsIndex(theirs));
      const clashing = theirs.map((their) => judgeEvent(mine, [their])).filter(({ verdict }) => verdict === 'clash');
      expect(whole.verdict === 'clash').toBe(clashing.length > 0);
    }),
  );
});

const same = (a: unknown, b: unknown) => canonical((a ?? null) as never) === canonical((b ?? null) as never);

test('[MG3] a merged result holds the writes of both sides and changes no other field', () => {
  let merged = 0;
  fc.assert(
    fc.property(base, anyChange, anyChange, (fields, mine, theirs) => {
      const my = foldChange(fields, mine);
      const their = foldChange(fields, theirs);
      if (!my.ok || !their.ok || judgeEvent(mine, [theirs]).verdict !== 'apply') return;
      const both = foldChange(their.value, mine);
      const reverse = foldChange(my.value, theirs);
      if (!both.ok || !reverse.ok) throw new Error('a change that applies must fold');
      merged += 1;
      expect(both).toEqual(reverse);
      for (const field of new Set([...Object.keys(fields), ...Object.keys(both.value ?? {})])) {
        const [before, a, b, after] = [fields, my.value, their.value, both.value].map((of) => of?.[field]);
        const [isMine, isTheirs] = [!same(before, a), !same(before, b)];
        if (!isMine && !isTheirs) expect(after).toEqual(before);
        else if (isMine !== isTheirs) expect(after).toEqual(isMine ? a : b);
        else if (field === 'n') expect(after).toBe(Number(a) + Number(b) - Number(before ?? 0));
        else if (field === 's') {
          const [was, one, two, now] = [before, a, b, after].map((set) => new Set((set ?? []) as string[])) as [
            Set<string>,
            Set<string>,
            Set<string>,
            Set<string>,
          ];
          const gone = was.difference(one).union(was.difference(two));
          expect(now).toEqual(was.union(one).union(two).difference(gone));
        } else if (same(a, b)) expect(after).toEqual(a);
        else expect([a, b]).toContainEqual(after);
      }
    }),
    { numRuns: 5_000 },
  );
  expect(merged).toBeGreaterThan(1_000);
});
