import { createHmac, hash } from 'node:crypto';
import type { Digest } from './ports.ts';

/** The real SHA-256, as every adapter of `Digest` has it; parts are joined as UTF-8. */
export const testDigest: Digest = {
  sha256: (...parts) => new Uint8Array(hash('sha256', joined(parts), 'buffer')),
  hmacSha256: (key, ...parts) => new Uint8Array(createHmac('sha256', key).update(joined(parts)).digest()),
};

const joined = (parts: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part)));

/** Bytes that only look random: the same sequence for the same seed. */
export function testRandom(seed = 1): { bytes(length: number): Uint8Array; unit(): number } {
  let state = seed >>> 0;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
  return { bytes: (length) => Uint8Array.from({ length }, () => Math.floor(next() * 256)), unit: next };
}
