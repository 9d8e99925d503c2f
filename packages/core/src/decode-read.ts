import { type Fault, type FaultCode, fail, type Outcome, ok } from './faults.ts';
import type { Json, JsonObject } from './json.ts';

/**
 * Small readers out of which the decoders are made. A reader takes JSON of the profile and a path, and gives the value as
 * its type, or stops the whole decoding with the path and a reason. Decoders never throw: `decoding` is where it ends.
 */
export type Read<T> = (json: Json | undefined, path: string) => T;

class Unreadable extends Error {
  readonly path: string;
  readonly reason: string;
  constructor(path: string, reason: string) {
    super(reason);
    this.path = path;
    this.reason = reason;
  }
}

export function unreadable(path: string, reason: string): never {
  throw new Unreadable(path, reason);
}

export function decoding<T, C extends FaultCode>(code: C, read: () => T): Outcome<T, C> {
  try {
    return ok(read());
  } catch (cause) {
    if (cause instanceof Unreadable) return fail(code, { path: cause.path, reason: cause.reason });
    throw cause;
  }
}

export const member = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/**
 * The members of an object. `strict` refuses keys that are not named: a request must not say what nobody reads. Answers
 * are read leniently, so that a newer ledger may say more.
 */
export function objectAt(json: Json | undefined, path: string, keys?: ReadonlySet<string>): JsonObject {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) unreadable(path, 'an object is expected');
  const object = json as JsonObject;
  if (keys !== undefined)
    for (const key in object) if (!keys.has(key)) unreadable(member(path, key), 'this key is not allowed here');
  return object;
}

export const text: Read<string> = (json, path) =>
  typeof json === 'string' ? json : unreadable(path, 'text is expected');

export const textWhere =
  (is: (value: unknown) => value is string, what: string): Read<string> =>
  (json, path) =>
    is(json) ? json : unreadable(path, `${what} is expected`);

export const flag: Read<boolean> = (json, path) =>
  typeof json === 'boolean' ? json : unreadable(path, 'true or false is expected');

export const whole =
  (min: number, max: number = Number.MAX_SAFE_INTEGER): Read<number> =>
  (json, path) =>
    typeof json === 'number' && Number.isSafeInteger(json) && json >= min && json <= max
      ? json
      : unreadable(
          path,
          `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`} is expected`,
        );

export const oneOfTexts =
  <const V extends readonly string[]>(...values: V): Read<V[number]> =>
  (json, path) =>
    typeof json === 'string' && values.includes(json)
      ? json
      : unreadable(path, `one of ${values.join(', ')} is expected`);

export const open: Read<JsonObject> = (json, path) => objectAt(json, path);

export const listOf =
  <T>(read: Read<T>, max: number = Number.MAX_SAFE_INTEGER): Read<readonly T[]> =>
  (json, path) => {
    if (!Array.isArray(json)) return unreadable(path, 'a list is expected');
    if (json.length > max) return unreadable(path, `at most ${max} are allowed`);
    return (json as readonly Json[]).map((element, at) => read(element, `${path}[${at}]`));
  };

export const recordOf =
  <T>(read: Read<T>): Read<Readonly<Record<string, T>>> =>
  (json, path) => {
    const object = objectAt(json, path);
    const record: Record<string, T> = {};
    for (const key in object) record[key] = read(object[key] as Json, member(path, key));
    return record;
  };

type Shape = Readonly<Record<string, Read<unknown> | { readonly optional: Read<unknown> }>>;
type Shaped<S extends Shape> = {
  readonly [K in keyof S as S[K] extends Read<unknown> ? K : never]: S[K] extends Read<infer T> ? T : never;
} & {
  readonly [K in keyof S as S[K] extends Read<unknown> ? never : K]?: S[K] extends { optional: Read<infer T> }
    ? T
    : never;
};

export const optional = <T>(read: Read<T>): { readonly optional: Read<T> } => ({ optional: read });

/** An object of exactly these members; with `lenient`, of at least these, and nothing else is passed on. */
export function objectOf<const S extends Shape>(shape: S, { lenient = false } = {}): Read<Shaped<S>> {
  const keys = new Set(Object.keys(shape));
  const entries = Object.entries(shape).map(([key, read]) =>
    typeof read === 'function' ? { key, read, isOptional: false } : { key, read: read.optional, isOptional: true },
  );
  return (json, path) => {
    const object = objectAt(json, path, lenient ? undefined : keys);
    const result: Record<string, unknown> = {};
    for (const { key, read, isOptional } of entries) {
      const value = Object.hasOwn(object, key) ? object[key] : undefined;
      if (value === undefined && isOptional) continue;
      if (value === undefined) unreadable(member(path, key), 'this is missing');
      result[key] = read(value, member(path, key));
    }
    return result as Shaped<S>;
  };
}

export const isFault = (value: object): value is { readonly fault: Fault } => 'fault' in value;
