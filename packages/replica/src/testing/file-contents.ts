import type { SqlRow } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';

/** Everything that the file says, but who holds it. */
export function contentsOf(file: string): string {
  const database = openNodeDatabase({ file });
  try {
    const tables = database
      .prepare(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name <> 'hf_coordinator' ORDER BY name",
      )
      .all();
    const rows = (name: string): SqlRow[] =>
      database
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => ({ ...row }));
    return JSON.stringify(
      tables.map((table) => [
        table,
        String(table['sql']).startsWith('CREATE TABLE') ? rows(table['name'] as string) : [],
      ]),
      (_key, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value),
    );
  } finally {
    database.close();
  }
}
