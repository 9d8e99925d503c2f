import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { schema as example } from '../../../docs/tasks/schema.ts';
import { checkEntityData, checkSchemaData, checkSnapshot } from './decode-schema.ts';
import type { Json } from './json.ts';
import { HARD_VALUES, jsonValue } from './json-values.fixture.ts';
import { schemaData } from './schema.ts';
import type { SchemaData } from './schema-data.ts';
import { nextSnapshot } from './schema-snapshot.ts';

const data = schemaData(example);
const copy = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;

/** Every place in a JSON value, as a path of keys. */
function* places(value: Json, path: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  yield path;
  if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) yield* places(member, [...path, key]);
}
function replaced(
  value: Json,
  path: readonly (string | number)[],
  by: (old: Json) => Json | undefined,
): Json | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return by(value);
  const changed = replaced((value as Record<string, Json>)[key] as Json, rest, by);
  if (Array.isArray(value))
    return (value as Json[]).flatMap((one, at) =>
      String(at) === String(key) ? (changed === undefined ? [] : [changed]) : [one],
    );
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>).flatMap(([name, one]) =>
      name !== String(key) ? [[name, one]] : changed === undefined ? [] : [[name, changed]],
    ),
  );
}

describe('schemas that come as data', () => {
  test('[SC2] what defineSchema gave is read back the same', () => {
    expect(checkSchemaData(copy(data))).toEqual({ ok: true, value: data });
    for (const [type, entity] of Object.entries(data.entities))
      expect(checkEntityData(type, copy(entity))).toEqual({ ok: true, value: entity });
  });

  test('[SC4] a type that says nothing but defaults reads like one that does not say them', () => {
    const said = { fields: { a: { kind: 'text', wire: 'a', onClash: 'ask' } }, index: [], editedWhileDeleted: 'keep' };
    expect(checkEntityData('note', said)).toEqual({ ok: true, value: { fields: { a: { kind: 'text' } } } });
  });

  test('[SC4] whatever is handed in is read or refused with a reason, and nothing throws', () => {
    const tries: unknown[] = [...HARD_VALUES, undefined, null, Number.NaN, new Date(0), () => 0, { fields: new Map() }];
    for (const value of tries)
      for (const outcome of [checkSchemaData(value), checkEntityData('note', value), checkSnapshot(value)]) {
        expect(outcome.ok).toBe(false);
        if (!outcome.ok)
          expect(outcome.fault).toMatchObject({ code: 'invalid-change', facts: { reason: expect.any(String) } });
      }
    expect(checkEntityData('note', JSON.parse('{"fields":{"__proto__":{"kind":"text"}}}')).ok).toBe(false);
    expect(checkEntityData('constructor', { fields: {} }).ok).toBe(false);
    const deep = (depth: number): Json =>
      depth === 0 ? { rule: 'present', fields: ['a'] } : { rule: 'not', of: deep(depth - 1) };
    expect(
      checkEntityData('note', { fields: { a: { kind: 'text', optional: true } }, rules: { r: deep(50) } }).ok,
    ).toBe(true);
    expect(
      checkEntityData('note', { fields: { a: { kind: 'text', optional: true } }, rules: { r: deep(5_000) } }).ok,
    ).toBe(false);
  });

  test('[SC4] a schema with any one place changed is refused, or understood whole', () => {
    const whole = copy(data);
    const all = [...places(whole)];
    let taken = 0;
    fc.assert(
      fc.property(fc.nat(all.length - 1), fc.option(jsonValue, { nil: undefined }), (at, value) => {
        const path = all[at] as readonly (string | number)[];
        const changed = replaced(whole, path, () => value);
        if (changed === undefined) return;
        const outcome = checkSchemaData(changed);
        if (!outcome.ok) return;
        taken += 1;
        // Taken twice is the same: nothing was half understood.
        expect(copy(checkSchemaData(copy(outcome.value)))).toEqual(copy(outcome));
      }),
      { numRuns: 5_000 },
    );
    expect(taken).toBeGreaterThan(0);
  });

  test('[SC4] a key that nobody reads is refused wherever it stands', () => {
    const whole = copy(data);
    for (const path of places(whole)) {
      const isOpen = path.length === 1 || /^(fields|rules)$/.test(String(path.at(-1))) || path.includes('default');
      const changed = replaced(whole, path, (old) =>
        typeof old === 'object' && old !== null && !Array.isArray(old) ? { ...old, unheardOf: 1 } : old,
      );
      if (JSON.stringify(changed) === JSON.stringify(whole)) continue;
      const outcome = checkSchemaData(changed);
      expect([path, outcome.ok]).toEqual([path, false]);
      if (!outcome.ok && !isOpen) expect(String(outcome.fault.facts?.['path'])).toMatch(/unheardOf$/);
    }
  });

  test('[SC2] a snapshot is read back as it was written', () => {
    const old: SchemaData = { format: 1, entities: { gone: { fields: { a: { kind: 'ref', to: 'lost' } } } } };
    const snapshot = nextSnapshot(nextSnapshot(null, old), data);
    expect(snapshot.retired).toEqual({ gone: { a: { kind: 'ref', to: 'lost' } } });
    expect(checkSnapshot(copy(snapshot))).toEqual({ ok: true, value: snapshot });
    expect(checkSnapshot({ ...(copy(snapshot) as object), format: 2 }).ok).toBe(false);
    expect(checkSnapshot({ format: 1, schema: data, retired: { gone: { a: { kind: 'tex' } } } }).ok).toBe(false);
  });
});
