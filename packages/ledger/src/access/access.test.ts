import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { roleIn } from './access.ts';
import { cookies, firstOf } from './cookies.ts';
import { jwt } from './jwt.ts';
import { staticTokens } from './static-tokens.ts';

const bearer = (token: string | null) => ({ token, cookie: null });

describe('static tokens', () => {
  const access = staticTokens({ secret: { account: 'ana', grants: { acme: 'writer' } } });

  test('[S43] a known token names its account, any other names nobody', async () => {
    expect(await access.verify(bearer('secret'))).toEqual({ account: 'ana', grants: { acme: 'writer' } });
    expect(await access.verify(bearer('Secret'))).toBeNull();
    expect(await access.verify(bearer(''))).toBeNull();
    expect(await access.verify(bearer(null))).toBeNull();
  });
});

describe('grants', () => {
  test('[S01] a role is read from own keys only', () => {
    expect(roleIn({ account: 'ana', grants: { acme: 'reader' } }, 'acme')).toBe('reader');
    expect(roleIn({ account: 'ana', grants: { acme: 'reader' } }, 'globex')).toBeNull();
    expect(roleIn({ account: 'ana', grants: {} }, 'constructor')).toBeNull();
    expect(roleIn({ account: 'ana', grants: { '*': 'administrator' } }, 'globex')).toBe('administrator');
  });
});

describe('jwt', () => {
  let sign: (claims: Record<string, unknown>, o?: { exp?: string; audience?: string; alg?: string }) => Promise<string>;
  let access: ReturnType<typeof jwt>;

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const key = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' };
    sign = (claims, o = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer('https://id.example.com/')
        .setAudience(o.audience ?? 'tracker')
        .setExpirationTime(o.exp ?? '5m')
        .sign(privateKey);
    access = jwt({
      issuer: 'https://id.example.com/',
      audience: 'tracker',
      keys: { keys: [key] },
      grants: (c) => ({ [c['org']]: c['role'] === 'owner' ? 'administrator' : 'writer' }),
    });
  });

  test('[S01] a verified token names account, grants and its end', async () => {
    const caller = await access.verify(bearer(await sign({ sub: 'ana', org: 'acme', role: 'owner' })));
    expect(caller).toMatchObject({ account: 'ana', grants: { acme: 'administrator' } });
    expect(caller?.expiresAtMs).toBeGreaterThan(0);
  });

  test('[S01] expired, foreign, unsigned and garbled tokens name nobody', async () => {
    const good = await sign({ sub: 'ana', org: 'acme' });
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${good.split('.')[1]}.`;
    expect(await access.verify(bearer(await sign({ sub: 'ana', org: 'acme' }, { exp: '-5m' })))).toBeNull();
    expect(await access.verify(bearer(await sign({ sub: 'ana', org: 'acme' }, { audience: 'other' })))).toBeNull();
    expect(await access.verify(bearer(unsigned))).toBeNull();
    expect(await access.verify(bearer(`${good.slice(0, -4)}AAAA`))).toBeNull();
    expect(await access.verify(bearer('not a token'))).toBeNull();
    expect(await access.verify(bearer('x'.repeat(10_000)))).toBeNull();
  });

  test('[S01] a claim that is missing opens nothing', async () => {
    expect(await access.verify(bearer(await sign({ org: 'acme' })))).toBeNull();
    expect((await access.verify(bearer(await sign({ sub: 'ana' }))))?.grants).toEqual({});
  });

  test('[S01] keys that cannot be fetched are the verifier’s trouble, not a bad token', async () => {
    const remote = jwt({
      issuer: 'https://id.example.com/',
      audience: 'tracker',
      jwksUri: 'http://127.0.0.1:9/jwks.json',
      grants: () => ({}),
    });
    await expect(remote.verify(bearer(await sign({ sub: 'ana' })))).rejects.toThrow();
  });
});

describe('several ways', () => {
  test('[S01] the first that knows the caller decides', async () => {
    const way = firstOf(
      staticTokens({ secret: { account: 'robot', grants: {} } }),
      cookies((header) => Promise.resolve(header === 'session=1' ? { account: 'ana', grants: {} } : null)),
    );
    expect((await way.verify({ token: 'secret', cookie: 'session=1' }))?.account).toBe('robot');
    expect((await way.verify({ token: null, cookie: 'session=1' }))?.account).toBe('ana');
    expect(await way.verify({ token: null, cookie: 'session=2' })).toBeNull();
  });
});
