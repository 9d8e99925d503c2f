import { fail, type Outcome, ok } from './faults.ts';

/** How many bytes a well-formed text takes in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: each half counts one more.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** Well-formed Unicode without NUL: what every store and every runtime keeps unchanged (JS1). */
export const isWellFormedText = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

const NEEDS_FIXUP = 0xd800;

/**
 * Compares two well-formed texts by their UTF-8 bytes, which is by code point. UTF-16 order differs only where one side
 * has a surrogate and the other a unit above the surrogates.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    let x = a.charCodeAt(at);
    let y = b.charCodeAt(at);
    if (x === y) continue;
    if (x >= NEEDS_FIXUP && y >= NEEDS_FIXUP) {
      // Surrogates stand for code points above every other unit.
      x = x >= 0xe000 ? x - 0x800 : x + 0x2000;
      y = y >= 0xe000 ? y - 0x800 : y + 0x2000;
    }
    return x < y ? -1 : 1;
  }
  return a.length - b.length;
}

/** Decodes strict UTF-8: no overlong forms, no surrogates, no byte order mark, nothing replaced (JS3). */
export function decodeUtf8(bytes: Uint8Array): Outcome<string, 'malformed'> {
  const bad = (at: number, reason: string) => fail('malformed', { byte: at, reason });
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return bad(0, 'a byte order mark');
  let text = '';
  const units: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = endOfAscii(bytes, at);
    if (end > at) {
      text += String.fromCharCode.apply(null, bytes.subarray(at, end) as unknown as number[]);
      at = end;
      continue;
    }
    // A run of other characters, so that a text in Greek is not put together letter by letter.
    while (at < bytes.length && units.length < RUN_MAX && (bytes[at] as number) >= 0x80) {
      const read = characterAt(bytes, at);
      if (typeof read === 'string') return bad(at, read);
      if (read.point < 0x10000) units.push(read.point);
      else units.push(0xd800 + ((read.point - 0x10000) >> 10), 0xdc00 + ((read.point - 0x10000) & 0x3ff));
      at += read.length;
    }
    text += String.fromCharCode(...units);
    units.length = 0;
  }
  return ok(text);
}

/** Arguments of one call: far below what any engine takes. */
const RUN_MAX = 4096;

function endOfAscii(bytes: Uint8Array, from: number): number {
  const max = Math.min(bytes.length, from + RUN_MAX);
  let end = from;
  while (end < max && (bytes[end] as number) < 0x80) end += 1;
  return end;
}

/** One character of two to four bytes, or why it is none. */
function characterAt(bytes: Uint8Array, at: number): { readonly point: number; readonly length: number } | string {
  const first = bytes[at] as number;
  const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length === 0) return 'a byte that begins no character';
  let point = first & (0xff >> (length + 1));
  for (let next = 1; next < length; next += 1) {
    const byte = bytes[at + next];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return 'a cut character';
    point = (point << 6) | (byte & 0x3f);
  }
  if ((length === 3 && point < 0x800) || (length === 4 && point < 0x10000)) return 'an overlong form';
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return 'no character';
  return { point, length };
}

/** A well-formed text as UTF-8 bytes. */
export function encodeUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(utf8Length(text));
  let to = 0;
  for (let at = 0; at < text.length; at += 1) {
    const point = text.codePointAt(at) as number;
    if (point > 0xffff) at += 1;
    if (point < 0x80) bytes[to++] = point;
    else {
      const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      bytes[to++] = ((0xff00 >> (more + 1)) & 0xff) | (point >> (6 * more));
      for (let rest = more - 1; rest >= 0; rest -= 1) bytes[to++] = 0x80 | ((point >> (6 * rest)) & 0x3f);
    }
  }
  return bytes;
}
