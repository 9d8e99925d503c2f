import { type Fault, type FaultCode, fail, type Outcome, ok } from './faults.ts';
import {
  type Found,
  found,
  isPlainObject,
  isTooDeep,
  type Json,
  type JsonObject,
  keyProblem,
  pathText,
  problemIn,
  TOO_DEEP,
  within,
} from './json.ts';

/**
 * Small checks out of which the decoders are made. A check looks at a value and gives what is wrong with it, or null:
 * then the value, as it is, has the type that the check is named for. Nothing is thrown, copied or changed, and whatever
 * a check lets through is JSON of the profile (JS1).
 */
export interface Check<T> {
  /** `depth`: how many objects and arrays are around the value, as `jsonProblem` counts. */
  (json: unknown, depth: number): Found | null;
  /** Only a type: what the value is where the check finds nothing. */
  readonly [CHECKED]?: T;
}
declare const CHECKED: unique symbol;

export function decode<T, C extends FaultCode>(
  code: C,
  check: Check<T>,
  json: unknown,
  { path = '', depth = 0 }: { readonly path?: string; readonly depth?: number } = {},
): Outcome<T, C> {
  const problem = check(json, depth);
  return problem === null ? ok(json as T) : { ok: false, fault: faultOf(code, problem, path) };
}

export const faultOf = <C extends FaultCode>(code: C, { keys, reason }: Found, path: string): Fault<C> =>
  fail(code, { path: pathText(keys.reverse(), path), reason }).fault;

// ── single values ───────────────────────────────────────────────────────────────────────────────────────────────────

export const text: Check<string> = (json, depth) =>
  typeof json === 'string' ? problemIn(json, depth) : found('text is expected');

export const textUpTo =
  (max: number): Check<string> =>
  (json, depth) =>
    typeof json === 'string' && json.length > max ? found(`at most ${max} characters are allowed`) : text(json, depth);

/** `is` must let only well-formed texts through. */
export const textWhere = (is: (value: unknown) => value is string, what: string): Check<string> => {
  const problem = `${what} is expected`;
  return (json) => (is(json) ? null : found(problem));
};

export const oneOfTexts = <const V extends readonly string[]>(...values: V): Check<V[number]> => {
  const problem = `${values.length === 1 ? '' : 'one of '}${values.join(', ')} is expected`;
  return (json) => (typeof json === 'string' && values.includes(json) ? null : found(problem));
};

export const flag: Check<boolean> = (json) => (typeof json === 'boolean' ? null : found('true or false is expected'));
export const yes: Check<true> = (json) => (json === true ? null : found('true is expected'));

export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER): Check<number> => {
  const problem = `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`} is expected`;
  return (json) =>
    Number.isSafeInteger(json) && (json as number) >= min && (json as number) <= max ? null : found(problem);
};

// ── objects and lists ───────────────────────────────────────────────────────────────────────────────────────────────

const AN_OBJECT = 'an object is expected';

/** An object of whatever the profile allows. */
export const open: Check<JsonObject> = (json, depth) =>
  isPlainObject(json) ? problemIn(json, depth) : found(AN_OBJECT);

/** Whatever the profile allows. */
export const anyJson: Check<Json> = problemIn;

/** What somebody else checks. */
export const unchecked: Check<Json> = () => null;

export const listOf =
  <T>(check: Check<T>, max: number = Number.MAX_SAFE_INTEGER): Check<readonly T[]> =>
  (json, depth) => {
    if (!Array.isArray(json)) return found('a list is expected');
    if (isTooDeep(depth)) return found(TOO_DEEP);
    if (json.length > max) return found(`at most ${max} are allowed`);
    for (let at = 0; at < json.length; at += 1) {
      const problem = check(json[at], depth + 1);
      if (problem !== null) return within(problem, at);
    }
    return null;
  };

export const recordOf = <T>(
  check: Check<T>,
  { key: keyCheck = text, max = Number.MAX_SAFE_INTEGER }: { readonly key?: Check<string>; readonly max?: number } = {},
): Check<Readonly<Record<string, T>>> => {
  return (json, depth) => {
    if (!isPlainObject(json)) return found(AN_OBJECT);
    if (isTooDeep(depth)) return found(TOO_DEEP);
    let count = 0;
    for (const key in json) {
      count += 1;
      if (count > max) return found(`at most ${max} are allowed`);
      const problem = keyProblem(key) ?? keyCheck(key, depth) ?? check(json[key], depth + 1);
      if (problem !== null) return within(problem, key);
    }
    return null;
  };
};

type Shape = Readonly<Record<string, Check<unknown> | { readonly optional: Check<unknown> }>>;
type Shaped<S extends Shape> = {
  readonly [K in keyof S as S[K] extends Check<unknown> ? K : never]: S[K] extends Check<infer T> ? T : never;
} & {
  readonly [K in keyof S as S[K] extends Check<unknown> ? never : K]?: S[K] extends {
    readonly optional: Check<infer T>;
  }
    ? T
    : never;
};

export const optional = <T>(check: Check<T>): { readonly optional: Check<T> } => ({ optional: check });

/** An object of exactly these members: a request must not say what nobody reads (EV4, S02). */
export const exactly = <const S extends Shape>(shape: S): Check<Shaped<S>> =>
  objectOf(shape, () => found('this key is not allowed here'));

/** An object of at least these members: a newer ledger may say more, as long as the profile allows it. */
export const atLeast = <const S extends Shape>(shape: S): Check<Shaped<S>> => objectOf(shape, problemIn);

function objectOf<const S extends Shape>(shape: S, unknownMember: Check<unknown>): Check<Shaped<S>> {
  const members = new Map<string, { readonly check: Check<unknown>; readonly counts: 0 | 1 }>();
  for (const [key, check] of Object.entries(shape))
    members.set(key, typeof check === 'function' ? { check, counts: 1 } : { check: check.optional, counts: 0 });
  const required = [...members].filter(([, { counts }]) => counts === 1).map(([key]) => key);
  return (json, depth) => {
    if (!isPlainObject(json)) return found(AN_OBJECT);
    if (isTooDeep(depth)) return found(TOO_DEEP);
    let present = 0;
    for (const key in json) {
      const member = members.get(key);
      const problem =
        member === undefined
          ? (keyProblem(key) ?? unknownMember(json[key], depth + 1))
          : member.check(json[key], depth + 1);
      if (problem !== null) return within(problem, key);
      if (member !== undefined) present += member.counts;
    }
    if (present === required.length) return null;
    return within(found('this is missing'), required.find((key) => !Object.hasOwn(json, key)) as string);
  };
}

/** An object whose shape follows from one member. */
export function byTag<T>(tag: string, cases: Readonly<Record<string, Check<T>>>): Check<T> {
  const checks = new Map(Object.entries(cases));
  const problem = `one of ${[...checks.keys()].join(', ')} is expected`;
  return (json, depth) => {
    if (!isPlainObject(json)) return found(AN_OBJECT);
    const value = json[tag];
    const check = typeof value === 'string' ? checks.get(value) : undefined;
    return check === undefined ? within(found(problem), tag) : check(json, depth);
  };
}
