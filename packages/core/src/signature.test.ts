import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { testDigest as digest } from './digest.fixture.ts';
import { bytesToHex } from './ids.ts';
import type { Json } from './json.ts';
import { jsonValue } from './json-values.fixture.ts';
import type { Digest } from './ports.ts';
import { type SignedEntity, StateSignature, signatureOf } from './signature.ts';

const field = fc.constantFrom('title', 'status', 'labels', 'toString', 'valueOf', 'hasOwnProperty', 'é');
const entity: fc.Arbitrary<SignedEntity> = fc.record({
  type: fc.constantFrom('issue', 'label'),
  id: fc.constantFrom('a', 'b', '"', '\\'),
  version: fc.integer({ min: 1, max: 3 }),
  fields: fc.dictionary(field, jsonValue, { maxKeys: 5, noNullPrototype: true }),
});
const keyOf = ({ type, id }: SignedEntity): string => `${type}/${id}`;

/** The definition of DG2, word for word, with numbers as large as they are. */
function byDefinition(entities: Iterable<SignedEntity>): string {
  const hash = (...parts: Json[]) => BigInt(`0x${bytesToHex(digest.sha256(canonical(parts)))}`);
  let sum = 0n;
  for (const { type, id, version, fields } of entities) {
    sum += hash('v', type, id, version);
    for (const [name, value] of Object.entries(fields)) sum += hash('f', type, id, name, value);
  }
  return (sum % 2n ** 256n).toString(16).padStart(64, '0');
}

test('[DG2] the signature is the sum modulo 2^256 of one hash per entity and one per field', () => {
  fc.assert(
    fc.property(fc.array(entity, { maxLength: 12 }), (entities) => {
      expect(signatureOf(entities, digest)).toBe(byDefinition(entities));
    }),
  );
  expect(signatureOf([], digest)).toBe('0'.repeat(64));
});

test('[DG2] kept along any history it is what the state alone gives', () => {
  const step = fc.record({ entity, isGone: fc.boolean(), isReopened: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const state = new Map<string, SignedEntity>();
      let signature = new StateSignature(digest);
      for (const { entity: next, isGone, isReopened } of steps) {
        const before = state.get(keyOf(next));
        const after = isGone ? undefined : next;
        signature.replace(before, after);
        if (after === undefined) state.delete(keyOf(next));
        else state.set(keyOf(next), after);
        if (isReopened) signature = new StateSignature(digest, signature.toHex());
        expect(signature.toHex()).toBe(signatureOf(state.values(), digest));
      }
    }),
    { numRuns: 200 },
  );
});

test('[DG2] the order in which entities are added and removed does not matter', () => {
  fc.assert(
    fc.property(fc.array(entity, { maxLength: 8 }), fc.array(entity, { maxLength: 8 }), (kept, passing) => {
      const signature = new StateSignature(digest);
      for (const one of passing) signature.remove(one);
      for (const one of kept.toReversed()) signature.add(one);
      for (const one of passing) signature.add(one);
      expect(signature.toHex()).toBe(signatureOf(kept, digest));
    }),
  );
});

test('[DG2] states that differ in one version, field, value, id or type differ in their signature', () => {
  const one: SignedEntity = { type: 'issue', id: 'a', version: 1, fields: { title: 'x', n: 1 } };
  const states: readonly SignedEntity[][] = [
    [],
    [one],
    [one, one],
    [{ ...one, version: 2 }],
    [{ ...one, id: 'b' }],
    [{ ...one, type: 'label' }],
    [{ ...one, fields: { title: 'x' } }],
    [{ ...one, fields: { title: 'x', m: 1 } }],
    [{ ...one, fields: { title: 'x', n: '1' } }],
    [{ ...one, fields: { title: 1, n: 'x' } }],
    [{ ...one, fields: { title: 'x', n: 1, valueOf: 1 } }],
  ];
  expect(new Set(states.map((state) => signatureOf(state, digest))).size).toBe(states.length);
});

test('[DG2] a change costs the hashes of its own fields', () => {
  let hashed = 0;
  const counting: Digest = {
    ...digest,
    sha256: (...parts) => {
      hashed += 1;
      return digest.sha256(...parts);
    },
  };
  const labels = ['a', 'b'];
  const fields = { title: 'x', labels, ...Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, at])) };
  const before = { type: 'issue', id: 'a', version: 1, fields };
  const signature = new StateSignature(counting);
  signature.replace(before, { ...before, version: 2, fields: { ...fields, title: 'y' } });
  expect(hashed).toBe(4);
  signature.replace(before, before);
  expect(hashed).toBe(4);
});

test('[DG2] carries run through all eight words, up and down', () => {
  const all = 'f'.repeat(64);
  const one: SignedEntity = { type: 'issue', id: 'a', version: 1, fields: { title: 'x' } };
  const signature = new StateSignature(digest, all);
  signature.add(one);
  const sum = (BigInt(`0x${all}`) + BigInt(`0x${byDefinition([one])}`)) % 2n ** 256n;
  expect(signature.toHex()).toBe(sum.toString(16).padStart(64, '0'));
  signature.remove(one);
  expect(signature.toHex()).toBe(all);
  const empty = new StateSignature(digest);
  empty.remove(one);
  empty.add(one);
  expect(empty.toHex()).toBe('0'.repeat(64));
});

test('[DG2] this signature is the same for ever', () => {
  const entities = [
    { type: 'issue', id: '7f', version: 4, fields: { title: 'Ship it', labels: ['a', 'b'], done: false } },
    { type: 'label', id: 'a', version: 1, fields: {} },
  ];
  expect(signatureOf(entities, digest)).toBe('2c72e80483db5faf2daf5ddb44f8c84dc06869d168e308c224b026f3b0f04dd8');
});
