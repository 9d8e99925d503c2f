import { fail, type Outcome, ok } from './faults.ts';
import { type Json, jsonProblem, pathText } from './json.ts';
import { LIMITS } from './limits.ts';
import { utf8Length } from './utf8.ts';

export interface ParseLimits {
  readonly bytesMax: number;
  /** Of objects and arrays, the whole text counted. */
  readonly depthMax: number;
}

/** JSON of the profile from a text (JS1, JS3): `parseWire`, then the profile. */
export function parseJson(text: string, limits: ParseLimits): Outcome<Json, 'malformed' | 'too-large'> {
  const parsed = parseWire(text, limits);
  if (!parsed.ok) return parsed;
  const problem = jsonProblem(parsed.value, '', LIMITS.jsonDepthMax - limits.depthMax);
  return problem === null ? parsed : fail('malformed', { ...problem });
}

/**
 * JSON from a text, for a decoder, which checks the profile itself: so that in a push one operation that the profile
 * refuses is refused alone. Within its limits before any object exists, and no duplicate keys (JS3).
 *
 * `JSON.parse` keeps the last of two equal keys silently. A text that is what the parsed value is written as holds no
 * duplicate; every other text is scanned for them.
 */
export function parseWire(text: string, { bytesMax, depthMax }: ParseLimits): Outcome<Json, 'malformed' | 'too-large'> {
  if (text.length > bytesMax || (text.length * 3 > bytesMax && utf8Length(text) > bytesMax))
    return fail('too-large', { limit: bytesMax });
  const tooDeepAt = firstDeeperThan(text, depthMax);
  if (tooDeepAt !== null)
    return fail('malformed', { path: structure(text, tooDeepAt).path, reason: `nested deeper than ${depthMax}` });
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return fail('malformed', { path: '', reason: 'not JSON' });
  }
  if (JSON.stringify(value) === text) return ok(value);
  const { path, isDuplicate } = structure(text, text.length);
  return isDuplicate ? fail('malformed', { path, reason: 'this key stands twice' }) : ok(value);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Where the text opens one level too many, or null. Brackets inside texts do not count. */
function firstDeeperThan(text: string, depthMax: number): number | null {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfText(text, at);
    else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      depth += 1;
      if (depth > depthMax) return at;
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) depth -= 1;
  }
  return null;
}

/** The index of the quote that ends the text which begins at `at`; the end of input where there is none. */
function endOfText(text: string, at: number): number {
  let end = at;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}

/** An object or array that is open at some place of a text. */
interface Open {
  /** Null for an array. */
  readonly keys: Set<string> | null;
  /** Where in it the scan stands. */
  place: string | number;
}

/** Walks a text until `end`, or to the first duplicate key. Keys are compared after their escapes are read (F122). */
function structure(text: string, end: number): { readonly path: string; readonly isDuplicate: boolean } {
  const open: Open[] = [];
  const path = () => pathText(open.map(({ place }) => place));
  for (let at = 0; at < end; at += 1) {
    const unit = text.charCodeAt(at);
    const top = open.at(-1);
    if (unit === OPEN_BRACE) open.push({ keys: new Set(), place: '' });
    else if (unit === OPEN_BRACKET) open.push({ keys: null, place: 0 });
    else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) open.pop();
    else if (unit === COMMA && typeof top?.place === 'number') top.place += 1;
    else if (unit === QUOTE) {
      const last = endOfText(text, at);
      if (top?.keys && nextSolid(text, last + 1) === COLON) {
        top.place = readKey(text.slice(at, last + 1));
        if (top.keys.has(top.place)) return { path: path(), isDuplicate: true };
        top.keys.add(top.place);
      }
      at = last;
    }
  }
  return { path: path(), isDuplicate: false };
}

function nextSolid(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at);
}

/** A key as it stands in the text. What is too deep was not parsed yet, and may be no JSON at all. */
function readKey(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}
