import { createHash, createHmac } from 'node:crypto';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { testDigest as digest } from './digest.fixture.ts';
import {
  attestOf,
  chainNext,
  chainStart,
  envelopeOfErased,
  isErased,
  leafOf,
  leafOfText,
  operationIdentity,
  splitEvent,
  storedEventText,
  verifyAttest,
} from './digest.ts';
import { DRAFT_KEYS, ENVELOPE_KEYS, type EventDraft, type StoredEvent } from './events.ts';
import { hexToBytes } from './ids.ts';
import type { Json } from './json.ts';
import { anyDraft, anyEnvelope, hexOf } from './messages.fixture.ts';

const IDENTITY = '11'.repeat(32);
const DRAFT: EventDraft = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  type: 'issue.updated',
  entityType: 'issue',
  entityId: '7f',
  change: { op: 'update', set: { title: 'Ship it' } },
  base: 3,
  at: '2026-11-30T00:00:00.000Z',
  salt: '000102030405060708090a0b0c0d0e0f',
};
const ENVELOPE_TEXT =
  '{"actionId":"a","actor":"ana","count":1,"entityVersion":4,"index":0,"recordedAt":"2026-11-30T00:00:01.000Z","replicaId":"r","requestId":"q","version":9}';
const sha256 = (...parts: (string | Uint8Array)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

test('[DG1] the chain begins with the hash of the log identity', () => {
  expect(chainStart(IDENTITY, digest)).toBe(sha256(Buffer.alloc(32, 0x11)));
});

test('[DG1] a leaf is the hash of the salt and the canonical draft without it', () => {
  const rest =
    '{"at":"2026-11-30T00:00:00.000Z","base":3,"change":{"op":"update","set":{"title":"Ship it"}},"entityId":"7f","entityType":"issue","id":"01890a5d-ac96-774b-bcce-b302099a8057","type":"issue.updated"}';
  expect(leafOf(DRAFT, digest)).toBe(sha256(Buffer.from(DRAFT.salt, 'hex'), rest));
});

test('[DG1] the chain goes on with the leaf and the canonical envelope', () => {
  const leaf = leafOf(DRAFT, digest);
  const previous = chainStart(IDENTITY, digest);
  expect(chainNext(previous, leaf, ENVELOPE_TEXT, digest)).toBe(
    sha256(hexToBytes(previous), hexToBytes(leaf), ENVELOPE_TEXT),
  );
});

test('[DG1] these digests are the same for ever', () => {
  const leaf = leafOf(DRAFT, digest);
  expect(leaf).toBe('3864041deae8bea6993a69d040b7b25cf2edaf0cdc537654979ae2aa35e83939');
  expect(chainNext(chainStart(IDENTITY, digest), leaf, ENVELOPE_TEXT, digest)).toBe(
    '677a2ddc628a84d3efc1d3de76011728c80a70cf3ab732596c1baea3cc67e95c',
  );
  expect(operationIdentity('a', [canonical(DRAFT as unknown as Json)], digest)).toBe(
    '4ab2899e54c816db49b0159326a9008548fb69373653530e16b9d6be7893215b',
  );
  expect(operationIdentity('a', ['{"x":1}', '{"y":1}'], digest)).toBe(sha256('"a"\n{"x":1}\n{"y":1}'));
  expect(attestOf(new Uint8Array(32), IDENTITY, 9, leaf, digest)).toBe(
    '454c1b3144cf7390f4c3a4418f1bbf0ce10e7b0a5ad5472d7961d3ca42658f79',
  );
});

test('[DG1 I26] the leaf of a canonical text is the leaf of its draft, whatever stands in it', () => {
  fc.assert(
    fc.property(anyDraft, (draft) => {
      const { salt, ...rest } = draft;
      const expected = sha256(Buffer.from(salt, 'hex'), canonicalize(rest) as string);
      expect(leafOf(draft, digest)).toBe(expected);
      expect(leafOfText(canonical(draft as unknown as Json), digest)).toBe(expected);
    }),
    { numRuns: 300 },
  );
});

test('[DG1] a member that looks like a salt, in fields, meta, ids or type, does not mislead', () => {
  const fake = { salt: 'f'.repeat(32) };
  const draft: EventDraft = {
    ...DRAFT,
    entityId: '"salt":"',
    type: `x","salt":"${'f'.repeat(32)}","y":"`,
    change: { op: 'create', fields: { salt: fake, z: '"salt":"' } },
    meta: { a: fake, salt: 'e'.repeat(32) },
    prior: '"salt":"',
  };
  expect(leafOfText(canonical(draft as unknown as Json), digest)).toBe(leafOf(draft, digest));
});

test('[DG1 EV4] a draft and an envelope joined as texts are one event that comes apart again', () => {
  fc.assert(
    fc.property(anyDraft, anyEnvelope, (draft, envelope) => {
      const texts = [canonical(draft as unknown as Json), canonical(envelope as unknown as Json)] as const;
      const event = JSON.parse(storedEventText(...texts)) as StoredEvent;
      expect(canonical(event as unknown as Json)).toBe(canonical({ ...draft, ...envelope } as unknown as Json));
      const parts = splitEvent(event);
      expect(canonical(parts.draft as unknown as Json)).toBe(texts[0]);
      expect(canonical(parts.envelope as unknown as Json)).toBe(texts[1]);
      expect(isErased(event)).toBe(false);
    }),
    { numRuns: 200 },
  );
});

test('[EV4] draft and envelope share no key', () => {
  expect(DRAFT_KEYS.filter((key) => (ENVELOPE_KEYS as readonly string[]).includes(key))).toEqual([]);
});

test('[DG1] an erased event keeps its envelope and its leaf, so the chain goes on over it', () => {
  fc.assert(
    fc.property(anyEnvelope, hexOf(32), (envelope, leaf) => {
      const erased = { ...envelope, leaf, erased: true } as const;
      expect(isErased(erased)).toBe(true);
      expect(envelopeOfErased(erased)).toEqual(envelope);
    }),
  );
});

test('[LG2] the identity of an operation changes with every part of it, and with their order', () => {
  const identities = [
    operationIdentity('a', ['{"x":1}', '{"y":1}'], digest),
    operationIdentity('a', ['{"y":1}', '{"x":1}'], digest),
    operationIdentity('a', ['{"x":1}'], digest),
    operationIdentity('b', ['{"x":1}', '{"y":1}'], digest),
    operationIdentity('a', [], digest),
    operationIdentity('a"\n{"x":1}', ['{"y":1}'], digest),
  ];
  expect(new Set(identities).size).toBe(identities.length);
});

test('[DG4] an attestation is an HMAC over identity, version and chain, and only that position bears it', () => {
  const key = Uint8Array.from({ length: 32 }, (_, at) => at);
  const chain = 'ab'.repeat(32);
  const position = { identity: IDENTITY, version: 12, chain, attest: attestOf(key, IDENTITY, 12, chain, digest) };
  const hmac = createHmac('sha256', key).update(hexToBytes(IDENTITY)).update('12\n').update(hexToBytes(chain));
  expect(position.attest).toBe(hmac.digest('hex'));
  expect(verifyAttest(key, position, digest)).toBe(true);
  for (const other of [
    { ...position, version: 13 },
    { ...position, version: 1 },
    { ...position, chain: 'ac'.repeat(32) },
    { ...position, identity: chain, chain: IDENTITY },
    { ...position, attest: position.attest.slice(2) },
    { ...position, attest: '' },
    { ...position, attest: `${position.attest}0` },
    { ...position, attest: position.attest.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) },
  ])
    expect(verifyAttest(key, other, digest)).toBe(false);
  expect(verifyAttest(new Uint8Array(32), position, digest)).toBe(false);
});
