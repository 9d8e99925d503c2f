/** T6 Many workspaces and channels, like Slack. */
import { type Client, createClient, isHoldfastError } from '@holdfast/replica';
import { Suspense, useState } from 'react';
import { type AppSchema, schema } from '../schema.ts';
import { ReplicaProvider, useCommit, useReplica, useSuspenseLiveQuery } from './holdfast.ts';

export const createAppClient = () =>
  createClient({
    schema,
    ledger: 'https://sync.example.com',
    account: { id: 'ana', cookies: true },
    worker: () => new Worker(new URL('./holdfast.worker.ts', import.meta.url), { type: 'module' }),
  });

export function Shell({ client }: { readonly client: Client<AppSchema> }) {
  const [workspace, open] = useState('acme');
  return (
    <>
      <nav>
        {['acme', 'globex'].map((name) => (
          <button type="button" key={name} onClick={() => open(name)}>
            {name}
          </button>
        ))}
      </nav>
      <ReplicaProvider client={client} workspace={workspace} fallback={<p>Opening {workspace}…</p>}>
        <Suspense fallback={<p>Reading…</p>}>
          <Channels />
        </Suspense>
      </ReplicaProvider>
    </>
  );
}

export function Channels() {
  const replica = useReplica();
  const commit = useCommit();
  const unread = useSuspenseLiveQuery((db) =>
    db
      .selectFrom('message')
      .leftJoin('readMark', 'readMark.channel', 'message.channel')
      .select((eb) => ['message.channel', eb.fn.countAll<number>().as('count')])
      .where((eb) => eb('message.arrival', '>', eb.fn.coalesce('readMark.upTo', eb.lit(0))))
      .groupBy('message.channel'),
  );
  return (
    <ul>
      {unread.map(({ channel, count }) => (
        <li key={channel}>
          <button type="button" onClick={() => void replica.follow(channel)}>
            {channel} ({count})
          </button>
          <button
            type="button"
            onClick={() => void commit((tx) => tx.message.create({ channel, body: 'hello' }), { log: channel })}
          >
            Say hello
          </button>
        </li>
      ))}
    </ul>
  );
}

export async function signOut(client: Client<AppSchema>) {
  try {
    await client.signOut({ unsent: 'refuse' });
  } catch (cause) {
    // Ask: keep it on this device, or export it.
    if (!isHoldfastError(cause, 'needs-attention')) throw cause;
  }
}
