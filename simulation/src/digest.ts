import { createHmac, hash } from 'node:crypto';
import type { Digest } from '@holdfast/core';

const joined = (parts: readonly (string | Uint8Array)[]): string | Uint8Array => {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'utf8') : part)));
};

/** Real SHA-256: a world proves its chains like any other. A Buffer from `hash` would cost more than the hashing. */
export const worldDigest: Digest = {
  sha256: (...parts) => Uint8Array.from(Buffer.from(hash('sha256', joined(parts), 'latin1'), 'latin1')),
  hmacSha256: (key, ...parts) => createHmac('sha256', key).update(joined(parts)).digest(),
};
