import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareUtf8, decodeUtf8, encodeUtf8, isWellFormedText, utf8Length } from './utf8.ts';

const text = fc.string({ unit: 'binary', maxLength: 40 });
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Texts around the borders of what takes one, two, three and four bytes. */
const borders = fc.array(fc.constantFrom('a', '\x7f', '\x80', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '😀'));

test('[JS1] the length in UTF-8 is what encoding gives', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        text,
        borders.map((all) => all.join('')),
      ),
      (one) => {
        expect(utf8Length(one)).toBe(Buffer.byteLength(one, 'utf8'));
        expect(encodeUtf8(one)).toEqual(new Uint8Array(Buffer.from(one, 'utf8')));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('[EV6] texts compare as their UTF-8 bytes do', () => {
  const close = borders.map((all) => all.slice(0, 3).join(''));
  fc.assert(
    fc.property(fc.oneof(text, close), fc.oneof(text, close), (a, b) => {
      expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    { numRuns: 2_000 },
  );
  expect(compareUtf8('\uffff', '😀')).toBe(-1);
  expect(compareUtf8('😀', '\ue000')).toBe(1);
});

test('[JS3 F120] bytes are read as a strict decoder reads them, or refused', () => {
  const nearlyText = fc.tuple(borders, fc.nat(), fc.nat(255)).map(([all, at, byte]) => {
    const bytes = new Uint8Array(Buffer.from(all.join('')));
    if (bytes.length > 0) bytes[at % bytes.length] = byte;
    return bytes;
  });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 8 }), nearlyText), (bytes) => {
      const decoded = decodeUtf8(bytes);
      if (!decoded.ok) {
        const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
        if (!isMarked) expect(() => strict.decode(bytes)).toThrow();
        expect(decoded.fault).toMatchObject({ code: 'malformed', facts: { byte: expect.any(Number) } });
      } else expect(decoded.value).toBe(strict.decode(bytes));
    }),
    { numRuns: 5_000 },
  );
});

test.each([
  ['a byte order mark', [0xef, 0xbb, 0xbf, 0x61], 0],
  ['an overlong slash', [0x61, 0xc0, 0xaf], 1],
  ['an overlong form of three bytes', [0xe0, 0x80, 0xaf], 0],
  ['an overlong form of four bytes', [0xf0, 0x80, 0x80, 0xaf], 0],
  ['a surrogate', [0x61, 0x61, 0xed, 0xa0, 0xbd], 2],
  ['beyond Unicode', [0xf4, 0x90, 0x80, 0x80], 0],
  ['a lone continuation', [0x80], 0],
  ['a cut character', [0x61, 0xe2, 0x82], 1],
  ['a byte that is never used', [0xff], 0],
])('[JS3 F120] %s is refused, with the byte', (_, bytes, byte) => {
  const decoded = decodeUtf8(Uint8Array.from(bytes));
  expect(decoded).toMatchObject({ ok: false, fault: { code: 'malformed', facts: { byte } } });
});

test('[I26] long texts of one to four bytes come back as they were', () => {
  for (const one of ['a', 'é', '€', '😀', 'a€', '\ufeff'.repeat(2)]) {
    const long = `x${one.repeat(9_001)}`;
    const decoded = decodeUtf8(encodeUtf8(long));
    expect(decoded.ok && decoded.value === long).toBe(true);
  }
});

test('[JS1] a text with NUL or a lone surrogate is not well-formed', () => {
  expect(['', 'a', '😀', '\ufffe', '\ufeff'].map(isWellFormedText)).toEqual([true, true, true, true, true]);
  expect(['\0', 'a\0', '\ud800', '\udc00a', '\udc00\ud800'].some(isWellFormedText)).toBe(false);
});
