import type { Database } from '@holdfast/core';

/** What is confirmed here is not what the ledger has: from HL1 until its state is adopted (HL4). */
export const isHistoryGone = (database: Database, log: string): boolean =>
  database
    .prepare(
      "SELECT 1 FROM main.hf_log WHERE log = ?1 AND (json_extract(blocked, '$.code') = 'history-changed' OR EXISTS (SELECT 1 FROM main.hf_setting WHERE name = 'adopting/' || ?1))",
    )
    .get(log) !== undefined;
