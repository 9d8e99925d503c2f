import { LIMITS } from '@holdfast/core';
import { expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { openReplicaState } from './state.ts';

const OLD = 700;

test('[F36 I28] history below what is kept goes in batches, not while the replica opens, and not while unsent work may need it', () => {
  const database = openNodeDatabase({ file: ':memory:' });
  const state = openReplicaState({
    database,
    platform: nodePlatform,
    schema: { format: 1, entities: {} } as never,
    ledger: 'l',
    account: 'ana',
    workspace: 'w',
    hostInstance: 'h',
  });
  database.exec("UPDATE main.hf_coordinator SET generation = 1, host_instance = 'h'");
  const kept = () => database.prepare('SELECT count(*) AS n FROM main.hf_event').get()?.['n'];
  state.takeOver(1);
  database.exec(`UPDATE main.hf_log SET head = ${LIMITS.historyEventsKept + OLD}`);
  database
    .prepare(
      `INSERT INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain)
       WITH RECURSIVE v(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM v WHERE n < ?)
       SELECT 'main', n, 'e' || n, 'issue', 'i', n, 'a' || n, 0, '{}', NULL, '{}', '' FROM v`,
    )
    .run(OLD + 10);
  state.takeOver(1);
  expect(kept()).toBe(OLD + 10);
  database.exec(
    `INSERT INTO main.hf_outbox (log, action_id, request_id, state, drafts, events, bytes, frame, identity, created_at)
     VALUES ('main', 'a', 'a', 'queued', '[]', 0, 0, '{}', '', 0)`,
  );
  expect(state.prune()).toBe(false);
  expect(kept()).toBe(OLD + 10);
  database.exec('DELETE FROM main.hf_outbox');
  expect(state.prune()).toBe(true);
  expect(state.prune()).toBe(false);
  expect(kept()).toBe(10);
  state.close();
});
