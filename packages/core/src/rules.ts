import { shownValue, wireName } from './field-facts.ts';
import { ownValue } from './fields.ts';
import type { Json, JsonObject } from './json.ts';
import { sameValue } from './order.ts';
import type { EntityData, RuleData } from './schema-data.ts';

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

/** The names in code of every field that a rule reads. */
export function fieldsOfRule(rule: RuleData): readonly string[] {
  switch (rule.rule) {
    case 'is':
      return [rule.field];
    case 'present':
      return rule.fields;
    case 'not':
      return fieldsOfRule(rule.of);
    case 'all':
    case 'any':
      return rule.of.flatMap(fieldsOfRule);
    case 'when':
      return [...fieldsOfRule(rule.condition), ...fieldsOfRule(rule.must)];
  }
}

/** The sentences of the rules that an entity with these fields (by wire name, as events set them) breaks. */
export function brokenRules(entity: EntityData, fields: JsonObject): readonly string[] {
  if (entity.rules === undefined) return [];
  const broken: string[] = [];
  for (const [sentence, rule] of Object.entries(entity.rules))
    if (!holds(rule, shownRow(entity, fields, fieldsOfRule(rule)))) broken.push(sentence);
  return broken;
}

/** As much of a row as a rule reads, as people see it: by name in code, with what is shown where no event set a field. */
function shownRow(entity: EntityData, fields: JsonObject, names: readonly string[]): JsonObject {
  const row: Record<string, Json> = {};
  for (const name of names) {
    const data = entity.fields[name];
    if (data !== undefined) row[name] = shownValue(ownValue(fields, wireName(name, data)), data);
  }
  return row;
}

/** Wire names of every field that an invariant reads: an operation that writes one is merged by its author (MG1). */
export function fieldsUnderRules(entity: EntityData): ReadonlySet<string> {
  const names = Object.values(entity.rules ?? {}).flatMap(fieldsOfRule);
  return new Set(names.map((name) => wireName(name, entity.fields[name] ?? { kind: 'json' })));
}
