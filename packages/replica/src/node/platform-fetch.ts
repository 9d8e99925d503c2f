import type { Fetch } from '@holdfast/core';

/**
 * An app's own `fetch` as the engine's (AC1): for a login gateway, a proxy, cookies. What a failure proves is not known from
 * it, so every rejection means: outcome unknown.
 */
export const fetchOf =
  (fetch: typeof globalThis.fetch, credentials?: 'include'): Fetch =>
  async (url, { method, headers, body, signal, progress }) => {
    const abort = new AbortController();
    const giveUp = () => abort.abort();
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp);
    try {
      const response = await fetch(url, {
        method,
        headers: { ...headers },
        redirect: 'manual',
        cache: 'no-store',
        signal: abort.signal,
        ...(body === undefined ? {} : { body }),
        ...(credentials === undefined ? {} : { credentials }),
      });
      const text = await response.text();
      progress?.(text.length);
      return {
        status: response.status,
        redirected: response.redirected,
        headers: response.headers,
        text: async () => text,
      };
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  };
