import { fail, type Outcome, ok } from './faults.ts';
import { type Json, jsonProblem } from './json.ts';
import { utf8Length } from './utf8.ts';

export interface ParseLimits {
  readonly bytesMax: number;
  readonly depthMax: number;
}

/**
 * Parses JSON as JS3 wants it: within its limits, no duplicate keys, then of the profile. `JSON.parse` keeps the last of
 * two equal keys silently, so a text is accepted unscanned only if writing the parsed value again gives the very same
 * text, which no duplicate can survive; every other text is scanned first.
 */
export function parseJson(text: string, limits: ParseLimits): Outcome<Json, 'malformed' | 'too-large'> {
  if (text.length > limits.bytesMax || utf8Length(text) > limits.bytesMax)
    return fail('too-large', { limit: limits.bytesMax });
  const nesting = scanNesting(text, limits.depthMax);
  if (nesting !== null) return nesting;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (cause) {
    return fail('malformed', { path: '', reason: cause instanceof SyntaxError ? 'not JSON' : 'unreadable' });
  }
  if (JSON.stringify(value) !== text) {
    const duplicate = duplicateKey(text);
    if (duplicate !== null) return fail('malformed', { path: duplicate, reason: 'this key stands twice' });
  }
  const problem = jsonProblem(value);
  return problem === null ? ok(value) : fail('malformed', { ...problem });
}

/** Depth before any object exists. Brackets inside texts do not count. */
function scanNesting(text: string, depthMax: number) {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfText(text, at);
    else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      depth += 1;
      // The request's own frame is around what the profile limits.
      if (depth > depthMax) return fail('malformed', { path: '', reason: `nested deeper than ${depthMax}` });
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) depth -= 1;
  }
  return null;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COLON = 0x3a;

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

/** The first duplicate key of a text that `JSON.parse` accepted. Keys are compared after their escapes are read. */
function duplicateKey(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === OPEN_BRACE) open.push(new Set());
    else if (unit === OPEN_BRACKET) open.push(null);
    else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) open.pop();
    else if (unit === QUOTE) {
      const end = endOfText(text, at);
      const keys = open.at(-1);
      if (keys && nextSolid(text, end + 1) === COLON) {
        const key = JSON.parse(text.slice(at, end + 1)) as string;
        if (keys.has(key)) return key;
        keys.add(key);
      }
      at = end;
    }
  }
  return null;
}

function nextSolid(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at);
}
