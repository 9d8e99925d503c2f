import { createHmac, hash, randomFillSync } from 'node:crypto';
import type { Clock, Digest, Platform, Random } from '@holdfast/core';

/** The ledger's clock, randomness and digest on Node. Timers do not keep a process alive; its sockets do. */
export const createNodePlatform = (): Platform => ({
  clock: createNodeClock(),
  random: createNodeRandom(),
  digest: createNodeDigest(),
});

export const createNodeClock = (): Clock => ({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
});

export const createNodeRandom = (): Random => ({
  bytes: (length) => randomFillSync(new Uint8Array(length)),
  unit: () => Math.random(),
});

const SCRATCH_BYTES = 64 * 1024;

/**
 * SHA-256 in one native call per digest: an append needs about ten of them per event, and a hash object for each costs
 * several times the hash. Parts are gathered in one buffer; the result comes as a latin1 text, which is cheaper to make
 * than a buffer.
 */
export function createNodeDigest(): Digest {
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

  const gather = (parts: readonly (string | Uint8Array)[]): Buffer => {
    let most = 0;
    for (const part of parts) most += typeof part === 'string' ? part.length * 3 : part.length;
    const into = most <= SCRATCH_BYTES ? scratch : Buffer.allocUnsafe(most);
    let at = 0;
    for (const part of parts) {
      if (typeof part === 'string') at += into.write(part, at, 'utf8');
      else {
        into.set(part, at);
        at += part.length;
      }
    }
    return into.subarray(0, at);
  };

  return {
    sha256: (...parts) => {
      const only = parts[0];
      return bytesOf(hash('sha256', parts.length === 1 && only !== undefined ? only : gather(parts), 'latin1'));
    },
    hmacSha256: (key, ...parts) => {
      const hmac = createHmac('sha256', key);
      for (const part of parts) hmac.update(part);
      return new Uint8Array(hmac.digest());
    },
  };
}

function bytesOf(latin1: string): Uint8Array {
  const bytes = new Uint8Array(latin1.length);
  for (let at = 0; at < latin1.length; at += 1) bytes[at] = latin1.charCodeAt(at);
  return bytes;
}
