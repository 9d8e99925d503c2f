import { isId, isInstant } from './ids.ts';
import { type Json, type JsonObject, jsonProblem } from './json.ts';
import { LIMITS } from './limits.ts';
import type { EntityData, FieldData } from './schema-data.ts';

/** One thing wrong with a change, for a form to show beside its field (CM3). */
export interface Issue {
  readonly path: readonly (string | number)[];
  readonly code:
    | 'wrong-type'
    | 'not-json'
    | 'too-long'
    | 'unknown-field'
    | 'unknown-entity'
    | 'missing'
    | 'not-optional'
    | 'not-settable'
    | 'out-of-range';
  readonly message: string;
}

type Path = Issue['path'];
export const issue = (path: Path, code: Issue['code'], message: string): Issue => ({ path, code, message });

/**
 * What is wrong with values that a change sets, by name in code: at most one issue per field (CM3). The page runs it
 * where a commit is recorded, the host again before it writes.
 */
export function validateFields(entity: EntityData, fields: JsonObject, path: Path = []): readonly Issue[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const data = Object.hasOwn(entity.fields, name) ? entity.fields[name] : undefined;
    const found =
      data === undefined
        ? issue([...path, name], 'unknown-field', 'there is no such field')
        : data.kind === 'serial'
          ? numberedByLedger([...path, name])
          : valueIssue(value, data, [...path, name]);
    return found === null ? [] : [found];
  });
}

export const numberedByLedger = (path: Path): Issue => issue(path, 'not-settable', 'the ledger numbers this');

/** What is wrong with one value for its field, or null. `null` values are the caller's business: they mean unset. */
export function valueIssue(value: unknown, data: FieldData, path: Path): Issue | null {
  const problem = jsonProblem(value, '', LIMITS.draftDepth);
  if (problem !== null) {
    const at = problem.path === '' ? '' : `${problem.path}: `;
    return issue(path, 'not-json', `${at}${problem.reason}`);
  }
  const wanted = wrongType(value as Json, data);
  if (wanted !== null) return issue(path, 'wrong-type', `${wanted} is expected`);
  if (data.kind === 'text' && data.max !== undefined && (value as string).length > data.max)
    return issue(path, 'too-long', `at most ${data.max} characters are allowed, this has ${(value as string).length}`);
  if (data.kind === 'setOf') return elementIssue(value as readonly Json[], data, path);
  return null;
}

function elementIssue(elements: readonly Json[], data: FieldData, path: Path): Issue | null {
  for (const [at, element] of elements.entries()) {
    const found = valueIssue(element, data.of ?? { kind: 'json' }, [...path, at]);
    if (found !== null) return found;
  }
  return null;
}

/** What a field of this kind holds, if `value` is something else. */
function wrongType(value: Json, data: FieldData): string | null {
  switch (data.kind) {
    case 'text':
    case 'rank':
      return typeof value === 'string' ? null : 'text';
    case 'ref':
      return isId(value) ? null : 'an id (1 to 128 visible ASCII characters)';
    case 'time':
      return isInstant(value) ? null : 'an instant like 2026-11-30T00:00:00.000Z';
    case 'oneOf':
      return data.values?.includes(value as string) === true ? null : `one of ${(data.values ?? []).join(', ')}`;
    case 'integer':
    case 'counter':
    case 'serial':
      return Number.isSafeInteger(value) ? null : 'a whole number within ±(2^53−1)';
    case 'number':
      return typeof value === 'number' ? null : 'a number';
    case 'flag':
      return typeof value === 'boolean' ? null : 'true or false';
    case 'setOf':
      return Array.isArray(value) ? null : 'a list';
    case 'json':
      return value === null ? 'a value (null means unset)' : null;
  }
}
