import type { Role } from '@holdfast/core';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import type { Access, Caller } from './access.ts';

export interface JwtOptions {
  readonly issuer: string;
  readonly audience: string;
  /** Where the issuer publishes its keys. Absent: `<issuer>/.well-known/jwks.json`. */
  readonly jwksUri?: string;
  /** Keys at hand instead of an address, for tests and closed networks. */
  readonly keys?: JSONWebKeySet;
  /** The claim that names the account. Absent: `sub`. */
  readonly account?: string;
  /** What a token may open. Called for each verified token; what it throws counts as no access. */
  readonly grants: (claims: JWTPayload & Record<string, any>) => Readonly<Record<string, Role>>;
  /** Asymmetric algorithms only, so that a public key can never be taken for a shared secret. */
  readonly algorithms?: readonly string[];
  /** Tolerated difference between the issuer's clock and ours, in seconds. Absent: 30. */
  readonly clockToleranceS?: number;
}

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const;
const ROLES: ReadonlySet<string> = new Set<Role>(['reader', 'writer', 'administrator']);
/** Longer than any token that an issuer of ours makes; checked before anything is decoded. */
const TOKEN_LENGTH_MAX = 8 * 1024;
const ACCOUNT = /^[!-~]{1,128}$/;

/** A token that the issuer did not make, or that has ended: no access. Everything else is the verifier's own trouble. */
const isBadToken = (cause: unknown): boolean =>
  cause instanceof errors.JWTInvalid ||
  cause instanceof errors.JWTExpired ||
  cause instanceof errors.JWTClaimValidationFailed ||
  cause instanceof errors.JWSInvalid ||
  cause instanceof errors.JWSSignatureVerificationFailed ||
  cause instanceof errors.JOSEAlgNotAllowed ||
  cause instanceof errors.JOSENotSupported ||
  cause instanceof errors.JWKSNoMatchingKey ||
  cause instanceof errors.JWKSMultipleMatchingKeys;

function checkedGrants(grants: unknown): Readonly<Record<string, Role>> | null {
  if (typeof grants !== 'object' || grants === null) return null;
  const checked: Record<string, Role> = Object.create(null) as Record<string, Role>;
  for (const [workspace, role] of Object.entries(grants)) {
    if (workspace === 'undefined' || workspace === '' || !ROLES.has(role as string)) continue;
    checked[workspace] = role as Role;
  }
  return checked;
}

/**
 * Access by JSON Web Tokens, verified with the issuer's published keys (`jose`).
 *
 * Resolves to null for a token that is malformed, expired, for another audience or signed by no key of the issuer.
 * Rejects when the keys cannot be fetched: the ledger answers 503 then, since it does not know.
 *
 * @example
 * access: jwt({ issuer: 'https://id.example.com/', audience: 'tracker', grants: (c) => ({ [c.org]: 'writer' }) })
 */
export function jwt(options: JwtOptions): Access {
  const keys =
    options.keys !== undefined
      ? createLocalJWKSet(options.keys)
      : createRemoteJWKSet(new URL(options.jwksUri ?? new URL('.well-known/jwks.json', options.issuer)));
  const accountClaim = options.account ?? 'sub';
  return {
    name: 'jwt',
    async verify({ token }): Promise<Caller | null> {
      if (token === null || token.length > TOKEN_LENGTH_MAX) return null;
      let payload: JWTPayload;
      try {
        ({ payload } = await jwtVerify(token, keys, {
          issuer: options.issuer,
          audience: options.audience,
          algorithms: [...(options.algorithms ?? ALGORITHMS)],
          clockTolerance: options.clockToleranceS ?? 30,
          requiredClaims: ['exp'],
        }));
      } catch (cause) {
        if (isBadToken(cause)) return null;
        throw cause;
      }
      const account = payload[accountClaim];
      if (typeof account !== 'string' || !ACCOUNT.test(account)) return null;
      let grants: Readonly<Record<string, Role>> | null;
      try {
        grants = checkedGrants(options.grants(payload));
      } catch {
        return null;
      }
      return grants === null ? null : { account, grants, expiresAtMs: (payload.exp as number) * 1000 };
    },
  };
}
