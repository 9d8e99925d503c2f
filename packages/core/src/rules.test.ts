import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { brokenRules, fieldsUnderRules, holds } from './rules.ts';
import { defineSchema, entity, flag, integer, oneOf, schemaData, setOf, text, time } from './schema.ts';
import type { EntityData, RuleData } from './schema-data.ts';

const schema = defineSchema({
  issue: entity(
    {
      status: oneOf(['todo', 'done'], { otherwise: 'todo', wire: 'state' }),
      closedAt: time({ optional: true }),
      owner: text({ optional: true }),
      size: integer({ default: 3 }),
      urgent: flag({ default: false }),
      labels: setOf(text()),
    },
    {
      rules: (r) => ({
        'a closed issue has a closing time': r.when(r.is('status', 'done'), r.present('closedAt')),
        'urgent work is owned': r.any(r.not(r.is('urgent', true)), r.present('owner')),
        'sizes are few': r.is('size', 1, 3, 5),
        'wontfix stands alone': r.not(r.is('labels', ['bug', 'wontfix'])),
      }),
    },
  ),
});
const issue = schemaData(schema).entities['issue'] as EntityData;

describe('rules', () => {
  test('[MG4] names the rules that fields, as events set them, break', () => {
    expect(brokenRules(issue, { state: 'todo' })).toEqual([]);
    expect(brokenRules(issue, { state: 'done' })).toEqual(['a closed issue has a closing time']);
    expect(brokenRules(issue, { state: 'done', closedAt: '2026-11-30T00:00:00.000Z' })).toEqual([]);
    expect(brokenRules(issue, { state: 'done', urgent: true, size: 2, labels: ['bug', 'wontfix'] })).toEqual([
      'a closed issue has a closing time',
      'urgent work is owned',
      'sizes are few',
      'wontfix stands alone',
    ]);
    expect(brokenRules(issue, { urgent: true, owner: 'ana' })).toEqual([]);
    expect(brokenRules({ fields: issue.fields }, { state: 'done' })).toEqual([]);
  });

  test('[MG1] reads by wire name, and never what a field of that name in code would be', () => {
    expect(brokenRules(issue, { status: 'done' })).toEqual([]);
  });

  test('[MG4] looks at what a row shows: defaults, what oneOf says otherwise, nothing for what does not fit', () => {
    // Unset: the default 3 holds, and `false` is not urgent.
    expect(brokenRules(issue, {})).toEqual([]);
    expect(brokenRules(issue, { size: 2 })).toEqual(['sizes are few']);
    // A status of a newer app is shown as todo.
    expect(brokenRules(issue, { state: 'done2' })).toEqual([]);
    // Text where a time is meant is shown as nothing.
    expect(brokenRules(issue, { state: 'done', closedAt: 'yesterday' })).toEqual(['a closed issue has a closing time']);
  });

  test('[MG1] an operation that writes a field which a rule reads is known by wire name', () => {
    expect(fieldsUnderRules(issue)).toEqual(new Set(['state', 'closedAt', 'urgent', 'owner', 'size', 'labels']));
    expect(fieldsUnderRules({ fields: { a: { kind: 'text' } } })).toEqual(new Set());
  });

  test('[MG1] conditions are those of logic', () => {
    const atom = fc.constantFrom('a', 'b', 'c').map((field): RuleData => ({ rule: 'is', field, values: [true] }));
    const rule = fc.letrec<{ rule: RuleData }>((tie) => ({
      rule: fc.oneof(
        atom,
        tie('rule').map((of): RuleData => ({ rule: 'not', of })),
        fc
          .tuple(fc.constantFrom('all' as const, 'any' as const), fc.array(tie('rule'), { maxLength: 3 }))
          .map(([kind, of]): RuleData => ({ rule: kind, of })),
        fc.tuple(tie('rule'), tie('rule')).map(([condition, must]): RuleData => ({ rule: 'when', condition, must })),
      ),
    })).rule;
    const row = fc.record({ a: fc.boolean(), b: fc.boolean(), c: fc.boolean() });
    fc.assert(
      fc.property(rule, rule, row, (p, q, values) => {
        const [isP, isQ] = [holds(p, values), holds(q, values)];
        expect(holds({ rule: 'not', of: p }, values)).toBe(!isP);
        expect(holds({ rule: 'all', of: [p, q] }, values)).toBe(isP && isQ);
        expect(holds({ rule: 'any', of: [p, q] }, values)).toBe(isP || isQ);
        expect(holds({ rule: 'when', condition: p, must: q }, values)).toBe(!isP || isQ);
      }),
    );
    expect(holds({ rule: 'all', of: [] }, {})).toBe(true);
    expect(holds({ rule: 'any', of: [] }, {})).toBe(false);
    // An absent field is no value, whatever every object has.
    expect(holds({ rule: 'present', fields: ['toString'] }, {})).toBe(false);
  });
});
