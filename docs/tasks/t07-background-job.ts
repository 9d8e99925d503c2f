/** T7 A background job in Node: closes what nobody has touched for a month. Exit code 3: a person is needed. */
import { createClient } from '@holdfast/replica';
import { schema } from './schema.ts';

await using client = createClient({
  schema,
  dir: './replica',
  ledger: process.env['LEDGER'] ?? 'https://sync.example.com',
  account: { id: 'service:closer', token: () => process.env['TOKEN']! },
});
await using replica = await client.open('acme');
await replica.settle({ signal: AbortSignal.timeout(60_000) });
const month = new Date(Date.now() - 30 * 86_400_000).toISOString();
const stale = await replica.query((db) =>
  db
    .selectFrom('issue')
    .selectAll()
    .where('status', '=', 'doing')
    .where('updatedAt', '<', process.env['BEFORE'] ?? month),
);
for (const issue of stale)
  await replica.commit((tx) => tx.issue.closed(issue, new Date().toISOString()), { label: 'Closed as stale' });
const { attention } = await replica.settle({ signal: AbortSignal.timeout(60_000) });
process.exitCode = attention === 0 ? 0 : 3;
