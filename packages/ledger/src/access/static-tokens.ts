import { hash as digestOf, timingSafeEqual } from 'node:crypto';
import type { Role } from '@holdfast/core';
import type { Access, Caller } from './access.ts';

export interface StaticToken {
  readonly account: string;
  readonly grants: Readonly<Record<string, Role>>;
}

const fingerprint = (token: string): Buffer => digestOf('sha256', token, 'buffer');

/**
 * Fixed tokens, for development and for tests. Tokens are compared as hashes in constant time, and every token is
 * compared, so that the time of an answer says nothing about how close a guess was.
 *
 * @example
 * access: staticTokens({ 's3cret': { account: 'ana', grants: { acme: 'writer' } } })
 */
export function staticTokens(tokens: Readonly<Record<string, StaticToken>>): Access {
  const known = Object.entries(tokens).map(([token, caller]) => ({ hash: fingerprint(token), caller }));
  return {
    name: 'static-tokens',
    verify({ token }): Promise<Caller | null> {
      if (token === null) return Promise.resolve(null);
      const hash = fingerprint(token);
      let found: StaticToken | null = null;
      for (const one of known) if (timingSafeEqual(one.hash, hash)) found = one.caller;
      return Promise.resolve(found === null ? null : { account: found.account, grants: found.grants });
    },
  };
}
