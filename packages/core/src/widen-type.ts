import { keptKind, wireName } from './field-facts.ts';
import { type EntityData, type FieldData, META_COLUMNS } from './schema-data.ts';
import { entityProblem } from './schema-problem.ts';

/**
 * Why an entity type cannot be defined so at run time (SC4), or null. `before` is the definition that stands so far.
 *
 * A definition only widens: it keeps every field that the one before it had, each wire name with its kind (SC2), and the
 * key. So what is refused once is refused for ever (LG2), and a device that gets only the newest definition knows the type
 * as all others do.
 */
export function typeProblem(name: string, data: EntityData, before: EntityData | undefined): string | null {
  const problem = entityProblem(name, data, null);
  if (problem !== null) return problem;
  if (data.local === true) return `${name}: what a log defines is not local`;
  if (META_COLUMNS.some((column) => column.toLowerCase() === name.toLowerCase()))
    return `${name}: every row has a column of this name`;
  return before === undefined ? null : widenProblem(name, before, data);
}

function widenProblem(type: string, before: EntityData, after: EntityData): string | null {
  const now = byWire(after);
  for (const [wire, data] of byWire(before)) {
    const is = now.get(wire);
    if (is === undefined) return `${type}.${wire}: a field stays. Make it optional instead of leaving it out`;
    if (keptKind(is) !== keptKind(data))
      return `${type}.${wire}: ${keptKind(data)} → ${keptKind(is)}. A wire name keeps its kind for ever: use another one`;
  }
  const [oldKey, newKey] = [keyOf(before), keyOf(after)];
  return oldKey === newKey ? null : `${type}: key ${oldKey || 'none'} → ${newKey || 'none'}. Ids are derived from it`;
}

const byWire = ({ fields }: EntityData): ReadonlyMap<string, FieldData> =>
  new Map(Object.entries(fields).map(([name, data]) => [wireName(name, data), data]));

const keyOf = ({ key = [], fields }: EntityData): string =>
  key.map((name) => wireName(name, fields[name] ?? { kind: 'json' })).join(', ');
