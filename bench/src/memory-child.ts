import { createClient } from '@holdfast/replica';
import { openBare } from './bare/sqlite.ts';
import { schema } from './schema.ts';
import { WORKSPACE } from './world.ts';

/**
 * A process of its own, so that nothing but the device is weighed: opens it, shows its first screen, and prints by how many
 * bytes the process grew. `node --expose-gc memory-child.ts device FOLDER LEDGER` or `… bare FILE`.
 */
const FIRST_SCREEN = 50;

/** The least of some readings after collections: what is really held. */
async function residentBytes(): Promise<number> {
  const readings: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
    readings.push(process.memoryUsage.rss());
  }
  return Math.min(...readings);
}

const [what, place = '', ledger = ''] = process.argv.slice(2);
const before = await residentBytes();
if (what === 'device') {
  await using client = createClient({ schema, ledger, dir: place, account: { id: 'ana', token: () => 'token' } });
  await using replica = await client.open(WORKSPACE);
  using live = replica.live((db) =>
    db.selectFrom('issue').select(['id', 'title', 'status']).orderBy('updatedAt', 'desc').limit(FIRST_SCREEN),
  );
  await live[Symbol.asyncIterator]().next();
  await replica.settle({ signal: AbortSignal.timeout(10_000) });
  console.log((await residentBytes()) - before);
} else {
  const db = openBare(place, { durability: 'normal' });
  const rows = db.prepare('SELECT id, title, status FROM issue ORDER BY updated_at DESC LIMIT 50').all();
  console.log((await residentBytes()) - before + 0 * rows.length);
  db.close();
}
