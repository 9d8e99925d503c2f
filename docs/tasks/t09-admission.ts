/** T9: a ledger that refuses what the app's rules forbid, inside the accepting transaction. */
import { defineLedger, jwt, refuse } from '@holdfast/ledger';
import { schema } from './schema.ts';

export const config = defineLedger({
  schema,
  store: { sqlite: './data' },
  access: jwt({
    issuer: 'https://id.example.com/',
    audience: 'tracker',
    grants: (claims) => ({ [claims['org']]: claims['role'] === 'owner' ? 'administrator' : 'writer' }),
  }),
  admit: {
    comment: ({ before }, actor) =>
      before !== undefined && before.createdBy !== actor.id
        ? refuse('not-yours', { message: 'Only its author may change a comment.' })
        : undefined,
    issue: ({ after, changed }, actor) =>
      changed.includes('status') && after?.fields['status'] === 'done' && actor.role === 'reader'
        ? refuse('may-not-close', { field: 'status' })
        : undefined,
  },
});
