import { defineLedger, refuse, staticTokens } from '@holdfast/ledger';

/** What `holdfast serve --config` of a test runs. Every token here is a secret, as far as the test is concerned. */
export const TOKENS = { ana: 'token-of-ana-7f1c', ben: 'token-of-ben-90d2' } as const;
export const LOG_KEY = 'c0ffee'.repeat(11);

export default defineLedger({
  store: { sqlite: 'the-folder-of-the-file' },
  access: staticTokens({
    [TOKENS.ana]: { account: 'ana', grants: { acme: 'writer' } },
    [TOKENS.ben]: { account: 'ben', grants: { acme: 'writer' } },
  }),
  admit: {
    /** The title says what the rule does. */
    issue: ({ after }) => {
      const title = String(after?.fields['title']);
      if (title.startsWith('throw ')) throw new Error(`bad title ${title}`);
      if (title.startsWith('refuse ')) return refuse('not-so', { message: title, field: 'title' });
      if (title.startsWith('terminate ')) process.kill(process.pid, 'SIGTERM');
      return undefined;
    },
  },
  logKey: LOG_KEY,
  listen: { host: '127.0.0.1', port: 4711 },
  admin: { port: 0 },
  createOnFirstUse: true,
  logLevel: 'debug',
});
