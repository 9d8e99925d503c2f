import { ownValue } from './fields.ts';
import type { Json, JsonObject } from './json.ts';
import { sameValue } from './order.ts';
import { fieldsOfRule, shownDefault, wireName } from './schema.ts';
import type { EntityData, FieldData, RuleData } from './schema-data.ts';

/** Invariants over one entity (MG1, MG4): conditions as data, checked by this one function wherever they are checked. */

/** Does the condition hold for a row? `row` is by name in code; a field that is absent is null. */
export function holds(rule: RuleData, row: JsonObject): boolean {
  switch (rule.rule) {
    case 'is': {
      const value = ownValue(row, rule.field) ?? null;
      return rule.values.some((allowed) => sameValue(allowed, value));
    }
    case 'present':
      return rule.fields.every((field) => (ownValue(row, field) ?? null) !== null);
    case 'not':
      return !holds(rule.of, row);
    case 'all':
      return rule.of.every((one) => holds(one, row));
    case 'any':
      return rule.of.some((one) => holds(one, row));
    case 'when':
      return !holds(rule.condition, row) || holds(rule.must, row);
  }
}

/** The sentences of the rules that these fields (by wire name) break. */
export function brokenRules(entity: EntityData, fields: JsonObject): readonly string[] {
  if (entity.rules === undefined) return [];
  const row = shownRow(entity, fields);
  return Object.entries(entity.rules).flatMap(([sentence, rule]) => (holds(rule, row) ? [] : [sentence]));
}

/** A row as people see it: by name in code, with what is shown where no event set a field. */
function shownRow(entity: EntityData, fields: JsonObject): JsonObject {
  const row: Record<string, Json> = {};
  for (const [name, data] of Object.entries(entity.fields)) {
    const value = ownValue(fields, wireName(name, data)) ?? shownDefault(data);
    if (value !== undefined) row[name] = shown(value, data);
  }
  return row;
}

const shown = (value: Json, data: FieldData): Json =>
  data.kind === 'oneOf' && !(data.values ?? []).includes(value as string) ? (data.otherwise ?? value) : value;

/** Wire names of every field that an invariant reads: an operation that writes one is merged by its author (MG1). */
export function fieldsUnderRules(entity: EntityData): ReadonlySet<string> {
  const names = Object.values(entity.rules ?? {}).flatMap(fieldsOfRule);
  return new Set(names.map((name) => wireName(name, entity.fields[name] ?? { kind: 'json' })));
}
