import fc from 'fast-check';
import { expect, test } from 'vitest';
import { testDigest, testRandom } from './digest.fixture.ts';
import {
  bytesToHex,
  hexToBytes,
  isDigest,
  isId,
  isInstant,
  isName,
  isSalt,
  isUuidV7,
  keyedId,
  randomHex,
  uuidv7,
} from './ids.ts';

test('[F127] an id is 1 to 128 visible ASCII characters', () => {
  for (const id of ['a', '!', '~', 'issue/7', '"', '\\', 'x'.repeat(128)]) expect(isId(id)).toBe(true);
  for (const id of ['', ' ', 'a b', 'é', 'a\n', 'a\0', '\x7f', 'x'.repeat(129), 7, null, undefined, ['a']])
    expect(isId(id)).toBe(false);
});

test('[SC7] a name is a small letter and up to 62 letters or digits', () => {
  for (const name of ['a', 'issue', 'issueComment2', 'x'.repeat(63), 'toString']) expect(isName(name)).toBe(true);
  for (const name of ['', 'A', '1a', '_a', 'a_b', 'a.b', 'a-b', 'é', 'a\n', 'x'.repeat(64), null])
    expect(isName(name)).toBe(false);
});

test('[EV4] an instant is ISO 8601 in UTC with milliseconds, in one form only', () => {
  expect(isInstant('2026-11-30T00:00:00.000Z')).toBe(true);
  expect(isInstant(new Date(1_700_000_000_123).toISOString())).toBe(true);
  for (const text of [
    '2026-11-30T00:00:00Z',
    '2026-11-30T00:00:00.0000Z',
    '2026-11-30T00:00:00.000+00:00',
    '2026-11-30 00:00:00.000Z',
    '2026-13-01T00:00:00.000Z',
    '2026-11-32T00:00:00.000Z',
    '2026-11-30T24:00:00.000Z',
    '2026-11-30T00:60:00.000Z',
    '2026-11-30T00:00:00.000Z\n',
    '+002026-11-30T00:00:00.000Z',
    0,
  ])
    expect(isInstant(text)).toBe(false);
});

test('[EV4 F44] the day of an instant is one that its month has, in every year as the calendar of Date says', () => {
  for (const year of ['0000', '1900', '2000', '2023', '2024', '9999'])
    for (let month = 1; month <= 12; month += 1)
      for (let day = 1; day <= 31; day += 1) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}T23:59:59.999Z`;
        const atMs = Date.parse(text);
        const isReal = !Number.isNaN(atMs) && new Date(atMs).toISOString() === text;
        expect([text, isInstant(text)]).toEqual([text, isReal]);
      }
  expect(isInstant('2026-02-31T00:00:00.000Z')).toBe(false);
});

test('[DG1] digests and salts are lower-case hex of one length', () => {
  expect(isDigest('0'.repeat(64)) && isSalt('f'.repeat(32))).toBe(true);
  for (const text of ['0'.repeat(63), '0'.repeat(65), 'F'.repeat(64), 'g'.repeat(64), `${'0'.repeat(64)}\n`, null])
    expect(isDigest(text) || isSalt(text)).toBe(false);
});

test('[DG1] hex is read back as the bytes it was made of', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(bytesToHex(bytes)).toBe(Buffer.from(bytes).toString('hex'));
      expect(hexToBytes(bytesToHex(bytes))).toEqual(bytes);
    }),
  );
  expect(hexToBytes('00FFaB')).toEqual(Uint8Array.from([0, 255, 171]));
});

test('[CM5 F47] a UUID of version 7 carries its time, sorts by it, and differs by its random bits', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 48 - 1), fc.nat(2 ** 48 - 1), (a, b) => {
      const [first, second] = [uuidv7(a, testRandom(1)), uuidv7(b, testRandom(1))];
      expect(isUuidV7(first)).toBe(true);
      expect(Number.parseInt(first.replaceAll('-', '').slice(0, 12), 16)).toBe(a);
      expect(first < second).toBe(a < b);
    }),
  );
  expect(uuidv7(1, testRandom(1))).not.toBe(uuidv7(1, testRandom(2)));
  expect(isUuidV7(uuidv7(-1, testRandom())) && isUuidV7(uuidv7(0.5, testRandom()))).toBe(true);
});

test('[CM5] every bit but version and variant comes from the clock or from chance', () => {
  const ones = { bytes: (length: number) => new Uint8Array(length).fill(0xff), unit: () => 0 };
  const zeros = { bytes: (length: number) => new Uint8Array(length), unit: () => 0 };
  expect(uuidv7(2 ** 48 - 1, ones)).toBe('ffffffff-ffff-7fff-bfff-ffffffffffff');
  expect(uuidv7(0, zeros)).toBe('00000000-0000-7000-8000-000000000000');
});

test('[CM5] a UUID of another version, or in another form, is refused', () => {
  const good = '01890a5d-ac96-774b-bcce-b302099a8057';
  expect(isUuidV7(good)).toBe(true);
  for (const text of [
    good.replace('-7', '-4'),
    good.replace('-b', '-c'),
    good.toUpperCase(),
    good.replaceAll('-', ''),
    `{${good}}`,
    `${good}\n`,
    null,
  ])
    expect(isUuidV7(text)).toBe(false);
});

test('[SC2] a keyed id is the same for the same key on every device, for ever', () => {
  expect(keyedId('label', ['bug'], testDigest)).toBe('kfe7ccdecc3a0c8694edd48456228a0f72380487');
  expect(isId(keyedId('label', ['é', 1, null, { a: [1] }], testDigest))).toBe(true);
});

test('[SC2] keys that differ have ids that differ, wherever their parts are cut', () => {
  const ids = [
    keyedId('label', ['a', 'b'], testDigest),
    keyedId('label', ['ab'], testDigest),
    keyedId('label', ['b', 'a'], testDigest),
    keyedId('labela', ['b'], testDigest),
    keyedId('label', ['1'], testDigest),
    keyedId('label', [1], testDigest),
  ];
  expect(new Set(ids).size).toBe(ids.length);
});

test('[LG8] random hex has two digits per byte', () => {
  expect(randomHex(testRandom(), 16)).toMatch(/^[0-9a-f]{32}$/);
});
