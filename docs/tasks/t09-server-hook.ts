/** T9 A server-side hook that validates or reacts. (Reactions and callers are declared only, until they exist.) */
import { createLedger, defineLedger, jwt, refuse } from '@holdfast/ledger';
import { schema } from './schema.ts';
import { createCaller, reaction } from './stubs-not-built-yet.ts';

declare const mail: {
  send(o: { to: string; subject: string; idempotencyKey: string; signal: AbortSignal }): Promise<void>;
};

export const config = defineLedger({
  schema,
  store: { sqlite: './data' },
  access: jwt({
    issuer: 'https://id.example.com/',
    audience: 'tracker',
    grants: (claims) => ({ [String(claims['org'])]: claims['role'] === 'owner' ? 'administrator' : 'writer' }),
  }),
  admit: {
    comment: ({ before }, actor) =>
      before && before.createdBy !== actor.id
        ? refuse('not-yours', { message: 'Only its author may change a comment.' })
        : undefined,
    issue: ({ after, changed }, actor) =>
      changed.includes('status') && after?.fields['status'] === 'done' && actor.role === 'reader'
        ? refuse('may-not-close', { field: 'status' })
        : undefined,
  },
});

export const reactions = {
  'mail-the-assignee': reaction(schema, 'issue', {
    when: (change) => change.changed.includes('assignee') && change.after?.assignee != null,
    run: (change, { idempotencyKey, signal }) =>
      mail.send({ to: change.after!.assignee!, subject: change.after!.title, idempotencyKey, signal }),
  }),
};

export const serve = async () => ({ fetch: (await createLedger(config)).fetch });

/** A webhook, on any runtime with fetch: no replica, exactly once. */
export const onWebhook = (hook: { id: string; issue: string }) =>
  createCaller({ schema, ledger: 'https://sync.example.com', workspace: 'acme', token: () => 'service' }).append(
    (tx) => tx.issue.closed(hook.issue, new Date().toISOString()),
    { idempotencyKey: hook.id },
  );
