import { createHmac, getRandomValues, hash } from 'node:crypto';
import type { Clock, Digest, Platform, Random } from '@holdfast/core';

/** Node's clock, randomness and SHA-256 as the engine's ports. */
export const nodeClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

const POOL_BYTES = 8 * 1024;

/** Random bytes are drawn by the pool: one call of the system for hundreds of salts and ids. Each byte is given once. */
function createNodeRandom(): Random {
  const pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return {
    bytes: (length) => {
      if (length > POOL_BYTES) return getRandomValues(new Uint8Array(length));
      if (used + length > POOL_BYTES) {
        getRandomValues(pool);
        used = 0;
      }
      const bytes = pool.slice(used, used + length);
      pool.fill(0, used, used + length);
      used += length;
      return bytes;
    },
    unit: () => Math.random(),
  };
}

export const nodeRandom: Random = createNodeRandom();

/** Where the parts of what is hashed are joined: a log is made of short texts, and each costs several digests. */
const scratch = Buffer.allocUnsafe(64 * 1024);

const joined = (parts: readonly (string | Uint8Array)[]): string | Uint8Array => {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  let length = 0;
  for (const part of parts) {
    // A code unit takes at most three bytes.
    const room = typeof part === 'string' ? part.length * 3 : part.length;
    if (length + room > scratch.length) return concatenated(parts);
    if (typeof part === 'string') length += scratch.write(part, length, 'utf8');
    else {
      scratch.set(part, length);
      length += part.length;
    }
  }
  return scratch.subarray(0, length);
};

const concatenated = (parts: readonly (string | Uint8Array)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'utf8') : part)));

const bytesOfLatin1 = (text: string): Uint8Array => {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
};

export const nodeDigest: Digest = {
  // One call into OpenSSL. As a text of 32 characters, since a Buffer of its own costs more than all the hashing.
  sha256: (...parts) => bytesOfLatin1(hash('sha256', joined(parts), 'latin1')),
  hmacSha256: (key, ...parts) => createHmac('sha256', key).update(joined(parts)).digest(),
};

export const nodePlatform: Platform = { clock: nodeClock, random: nodeRandom, digest: nodeDigest };
