import { type Database, META_COLUMNS } from '@holdfast/core';
import { physicalColumn } from './fit-table.ts';
import type { EntityModel } from './schema-model.ts';
import { quoted } from './tables.ts';

/**
 * Temporary views, named as the entity types, over the tables of the same name: what an app's query sees. They belong to
 * this connection, so two app versions on one file each see their own columns under their own names.
 */
export function openView(database: Database, model: EntityModel): void {
  const columns = [...META_COLUMNS, ...model.byName.keys()].map(
    (name) => `${quoted(physicalColumn(model, name))} AS ${quoted(name)}`,
  );
  database.exec(
    `DROP VIEW IF EXISTS temp.${quoted(model.type)}; CREATE TEMP VIEW ${quoted(model.type)} AS SELECT ${columns.join(', ')} FROM main.${quoted(model.type)} WHERE _log < '~'`,
  );
}
