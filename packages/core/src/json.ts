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

export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

const memberPath = (path: string, key: string): string => {
  const name = /^[A-Za-z_$][\w$.-]*$/.test(key) ? key : JSON.stringify(key);
  return path === '' ? name : `${path}.${name}`;
};

/** The first thing about `value` that the profile refuses, or null. `-0` is allowed: it is written as `0`. */
export function jsonProblem(value: unknown, path = '', depth = 0): JsonProblem | null {
  switch (typeof value) {
    case 'string':
      return isWellFormedText(value) ? null : { path, reason: textProblem(value) };
    case 'boolean':
      return null;
    case 'number':
      return numberProblem(value, path);
    case 'object':
      break;
    default:
      return { path, reason: `a ${typeof value} is not JSON` };
  }
  if (value === null) return null;
  if (depth >= LIMITS.jsonDepthMax) return { path, reason: `nested deeper than ${LIMITS.jsonDepthMax}` };
  if (Array.isArray(value)) return arrayProblem(value, path, depth);
  if (!isPlainObject(value)) return { path, reason: `a ${value.constructor?.name ?? 'foreign object'} is not JSON` };
  for (const key in value) {
    if (!isSafeKey(key)) return { path: memberPath(path, key), reason: 'this key is not allowed' };
    const problem = jsonProblem(value[key], memberPath(path, key), depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function arrayProblem(value: readonly unknown[], path: string, depth: number): JsonProblem | null {
  for (let at = 0; at < value.length; at += 1) {
    if (!(at in value)) return { path: `${path}[${at}]`, reason: 'a hole is not JSON' };
    const problem = jsonProblem(value[at], `${path}[${at}]`, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function numberProblem(value: number, path: string): JsonProblem | null {
  if (!Number.isFinite(value)) return { path, reason: `${value} is not JSON` };
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return { path, reason: 'an integer beyond ±(2^53−1) is not exact; write it as text' };
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

/** Reads any value as JSON of the profile, or says where and why not (JS1). Nothing is copied or changed. */
export function checkJson(value: unknown, path = ''): Outcome<Json, 'invalid-change'> {
  const problem = jsonProblem(value, path);
  return problem === null ? ok(value as Json) : fail('invalid-change', { ...problem });
}
