/** T8 A program that reads the same replica through the daemon. (Waits for the daemon; it compiles.) */
import { createClient } from '@holdfast/replica';
import { schema } from './schema.ts';

await using client = createClient({
  schema,
  ledger: 'https://sync.example.com',
  account: { id: 'ana' },
  via: 'daemon',
});
await using replica = await client.open('acme');
using live = replica.live((db) => db.selectFrom('issue').select(['number', 'title']).where('status', '=', 'doing'));
for await (const rows of live) console.table(rows);
