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
  const parts: string[] = [];
  let units: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    const first = bytes[at] as number;
    let point: number;
    if (first < 0x80) {
      point = first;
      at += 1;
    } else {
      const more =
        first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xc2 && first < 0xe0 ? 1 : 0;
      if (more === 0) return bad(at, 'a byte that begins no character');
      point = first & (0x3f >> more);
      for (let next = 1; next <= more; next += 1) {
        const byte = bytes[at + next];
        if (byte === undefined || (byte & 0xc0) !== 0x80) return bad(at, 'a cut character');
        point = (point << 6) | (byte & 0x3f);
      }
      if ((more === 2 && point < 0x800) || (more === 3 && point < 0x10000)) return bad(at, 'an overlong form');
      if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return bad(at, 'no character');
      at += more + 1;
    }
    if (point < 0x10000) units.push(point);
    else units.push(0xd800 + ((point - 0x10000) >> 10), 0xdc00 + ((point - 0x10000) & 0x3ff));
    if (units.length >= 4096) {
      parts.push(String.fromCharCode(...units));
      units = [];
    }
  }
  parts.push(String.fromCharCode(...units));
  return ok(parts.join(''));
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
