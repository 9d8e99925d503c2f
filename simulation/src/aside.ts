import type { Database } from '@holdfast/core';

/**
 * Names each action that waited for a person, or for work that did, as this connection writes it. What its author did
 * meanwhile on the same entity did not wait for it (ST2): the log may have it in another order.
 */
export function watchAside(database: Database, waited: Set<string>): void {
  database.function('world_aside', (action) => {
    waited.add(action as string);
    return null;
  });
  database.exec(`CREATE TEMP TRIGGER IF NOT EXISTS world_aside AFTER UPDATE ON main.hf_outbox
WHEN new.held_by IS NOT NULL OR new.state IN ('parked', 'refused', 'lost') BEGIN
  SELECT world_aside(new.action_id);
END;`);
}
