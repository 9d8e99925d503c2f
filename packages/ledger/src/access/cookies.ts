import type { Access, Caller } from './access.ts';

/**
 * Access by the session cookie of an application that lives on the same site. The function gets the raw `Cookie` header
 * and answers who it is, or null. Requests with a cookie are accepted only from configured origins (see `origins`).
 */
export function cookies(verify: (cookieHeader: string) => Promise<Caller | null>): Access {
  return {
    name: 'cookies',
    verify: ({ cookie }) => (cookie === null ? Promise.resolve(null) : verify(cookie)),
  };
}

/** Tries several ways in order; the first that knows the caller decides. */
export function firstOf(...ways: readonly Access[]): Access {
  return {
    name: ways.map((way) => way.name).join('+'),
    async verify(credential) {
      for (const way of ways) {
        const caller = await way.verify(credential);
        if (caller !== null) return caller;
      }
      return null;
    },
  };
}
