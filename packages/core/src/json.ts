import { fail, type Outcome, ok } from './faults.ts';
import { LIMITS } from './limits.ts';
import { isWellFormedText } from './utf8.ts';

/** The JSON profile (4.1): what every runtime reads, stores and hashes alike. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Keys that could reach an object's prototype. Never a field, never a member (S16). */
const DANGEROUS_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export const isSafeKey = (key: string): boolean => !DANGEROUS_KEYS.has(key) && isWellFormedText(key);

export interface JsonProblem {
  /** `change.set.title`, `labels[3]`; empty for the value itself. */
  readonly path: string;
  readonly reason: string;
}

/** Reads any value as JSON of the profile, or says where and why not (JS1). Nothing is copied or changed. */
export function checkJson(value: unknown, path = ''): Outcome<Json, 'invalid-change'> {
  const problem = jsonProblem(value, path);
  return problem === null ? ok(value as Json) : fail('invalid-change', { ...problem });
}

/**
 * The first thing about `value` that the profile refuses, or null. `-0` is allowed: it is written as `0`. `depth` is how
 * many objects and arrays are around the value already; below 0 for a message around what the limit is meant for.
 */
export function jsonProblem(value: unknown, path = '', depth = 0): JsonProblem | null {
  const found = problemIn(value, depth);
  return found === null ? null : { path: pathText(found.keys.reverse(), path), reason: found.reason };
}

/** `keys` from the inside out: a path is only made where there is a problem. */
export interface Found {
  readonly keys: (string | number)[];
  readonly reason: string;
}

export const found = (reason: string): Found => ({ keys: [], reason });

export function within(problem: Found, key: string | number): Found {
  problem.keys.push(key);
  return problem;
}

/** For an object or a list: so many are around it already that there may be no further one. */
export const isTooDeep = (depth: number): boolean => depth >= LIMITS.jsonDepthMax;
export const TOO_DEEP = `nested deeper than ${LIMITS.jsonDepthMax}`;

/** `jsonProblem` without the path: a caller that walks itself says with `within` where it stood. */
export function problemIn(value: unknown, depth: number): Found | null {
  switch (typeof value) {
    case 'string':
      return isWellFormedText(value) ? null : found(textProblem(value));
    case 'boolean':
      return null;
    case 'number':
      return numberProblem(value);
    case 'object':
      if (value === null) return null;
      break;
    default:
      return found(`a value of type ${typeof value} is not JSON`);
  }
  if (isTooDeep(depth)) return found(TOO_DEEP);
  return Array.isArray(value) ? arrayProblem(value, depth) : objectProblem(value, depth);
}

function objectProblem(value: object, depth: number): Found | null {
  if (!isPlainObject(value)) return found(`${describe(value)} is not JSON`);
  for (const key in value) {
    const problem = keyProblem(key) ?? problemIn(value[key], depth + 1);
    if (problem !== null) return within(problem, key);
  }
  return null;
}

export const keyProblem = (key: string): Found | null => (isSafeKey(key) ? null : found('this key is not allowed'));

function arrayProblem(value: readonly unknown[], depth: number): Found | null {
  for (let at = 0; at < value.length; at += 1) {
    const problem = problemIn(value[at], depth + 1);
    if (problem !== null) return within(problem, at);
  }
  return null;
}

export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

function describe(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `a ${name}` : 'an object of a class';
}

function numberProblem(value: number): Found | null {
  if (!Number.isFinite(value)) return found(`${value} is not JSON`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return found('an integer beyond ±(2^53−1) is not exact; write it as text');
  return null;
}

function textProblem(value: string): string {
  for (let at = 0; at < value.length; at += 1) {
    const unit = value.charCodeAt(at);
    if (unit === 0) return `NUL at ${at}`;
    const isHigh = unit >= 0xd800 && unit <= 0xdbff;
    const next = value.charCodeAt(at + 1);
    if (isHigh && next >= 0xdc00 && next <= 0xdfff) at += 1;
    else if (unit >= 0xd800 && unit <= 0xdfff) return `a lone surrogate at ${at}`;
  }
  return 'not well-formed text';
}

// ── paths ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a path shows of one key, and a path in all: a fault must stay small whatever it is about (F126). */
const KEY_SHOWN_MAX = 80;
const PATH_SHOWN_MAX = 400;

/** Keys from the outside in as one text: `change.add.labels[3]`. A key that is no plain name is quoted. */
export function pathText(keys: readonly (string | number)[], prefix = ''): string {
  let path = prefix;
  for (const key of keys) {
    if (typeof key === 'number') path += `[${key}]`;
    else path += path === '' ? keyText(key) : `.${keyText(key)}`;
    if (path.length > PATH_SHOWN_MAX) return `${path.slice(0, PATH_SHOWN_MAX)}…`;
  }
  return path;
}

function keyText(key: string): string {
  const shown = key.length > KEY_SHOWN_MAX ? `${key.slice(0, KEY_SHOWN_MAX)}…` : key;
  return /^[A-Za-z_$][\w$.…-]*$/.test(shown) ? shown : JSON.stringify(shown);
}
