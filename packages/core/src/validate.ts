import { isId, isInstant } from './ids.ts';
import { type Json, jsonProblem } from './json.ts';
import type { FieldData } from './schema-data.ts';

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

type Path = readonly (string | number)[];
const issue = (path: Path, code: Issue['code'], message: string): Issue => ({ path, code, message });

/** What is wrong with one value for its field, or null. `null` values are the caller's business: they mean unset. */
export function valueIssue(value: Json | undefined, data: FieldData, path: Path): Issue | null {
  const problem = jsonProblem(value);
  if (problem !== null) {
    const at = problem.path === '' ? '' : `${problem.path}: `;
    return issue(path, 'not-json', `${at}${problem.reason}`);
  }
  const wanted = wrongType(value as Json, data);
  if (wanted !== null) return issue(path, 'wrong-type', `${wanted} is expected`);
  if (data.kind === 'text' && data.max !== undefined && (value as string).length > data.max)
    return issue(path, 'too-long', `at most ${data.max} characters, this has ${(value as string).length}`);
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
      return isId(value) ? null : 'an id';
    case 'time':
      return isInstant(value) ? null : 'an instant like 2026-11-30T00:00:00.000Z';
    case 'oneOf':
      return data.values?.includes(value as string) === true ? null : `one of ${(data.values ?? []).join(', ')}`;
    case 'integer':
    case 'counter':
    case 'serial':
      return Number.isSafeInteger(value) ? null : 'a whole number';
    case 'number':
      return typeof value === 'number' ? null : 'a number';
    case 'flag':
      return typeof value === 'boolean' ? null : 'true or false';
    case 'setOf':
      return Array.isArray(value) ? null : 'a list';
    case 'json':
      return null;
  }
}
