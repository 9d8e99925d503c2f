import { createHmac, hash } from 'node:crypto';
import type { Digest } from '@holdfast/core';

const joined = (parts: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'utf8') : part)));

/** Real SHA-256: a world proves its chains like any other. */
export const worldDigest: Digest = {
  sha256: (...parts) => hash('sha256', joined(parts), 'buffer'),
  hmacSha256: (key, ...parts) => createHmac('sha256', key).update(joined(parts)).digest(),
};
