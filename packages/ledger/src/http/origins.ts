/**
 * Which web pages may talk to this ledger. An origin is compared whole, never by prefix or suffix; nothing is reflected
 * that was not configured (S12, S31).
 */
export interface Origins {
  /** True for a request that a page of this origin may make. A request without `Origin` comes from no page. */
  allows(origin: string | null): boolean;
  corsHeaders(origin: string | null): Readonly<Record<string, string>>;
}

const EXPOSED = 'Holdfast-Protocol, Holdfast-Log, Holdfast-Permit, Retry-After';
const ALLOWED_HEADERS = 'Authorization, Content-Type, Holdfast-Permit';

/** An origin as browsers write it: scheme, host, and a port that is not the scheme's own. */
export function checkedOrigin(text: string): string {
  const url = new URL(text);
  if (url.origin !== text)
    throw new TypeError(`"${text}" is not an origin. Write it as the browser does: "${url.origin}".`);
  return text;
}

export function createOrigins(configured: readonly string[]): Origins {
  const allowed = new Set(configured.map(checkedOrigin));
  return {
    allows: (origin) => origin === null || allowed.has(origin),
    corsHeaders: (origin) =>
      origin !== null && allowed.has(origin)
        ? {
            'Access-Control-Allow-Origin': origin,
            'Access-Control-Allow-Credentials': 'true',
            'Access-Control-Allow-Methods': 'GET, POST',
            'Access-Control-Allow-Headers': ALLOWED_HEADERS,
            'Access-Control-Expose-Headers': EXPOSED,
            'Access-Control-Max-Age': '600',
            Vary: 'Origin',
          }
        : { Vary: 'Origin' },
  };
}

/**
 * A second lock behind the origin list: browsers say in `Sec-Fetch-Site` where a request came from. Cross-site is
 * refused unless its origin is on the list (S10).
 */
export function isForeignPage(headers: { get(name: string): string | null | undefined }, origins: Origins): boolean {
  const origin = headers.get('origin') ?? null;
  if (!origins.allows(origin)) return true;
  return headers.get('sec-fetch-site') === 'cross-site' && origin === null;
}
