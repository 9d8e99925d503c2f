import type { DatabaseSync } from 'node:sqlite';

const OPERATION = `last_place, count, request_id, action_id, replica_id, actor, recorded_at, origin, signature, bytes,
  part_events`;
const ENTITY = `key, type, id, version, last_version, fields, created_by, created_at, updated_by, updated_at, arrival,
  assigned`;

/** Every statement of the store, prepared once per open file. Identifiers are fixed; values are always bound (S15). */
export type Statements = ReturnType<typeof prepareStatements>;

export function prepareStatements(db: DatabaseSync) {
  const sql = (text: string) => db.prepare(text);
  return {
    begin: sql('BEGIN IMMEDIATE'),
    commit: sql('COMMIT'),
    rollback: sql('ROLLBACK'),

    workspace: sql('SELECT name, created_at FROM workspace'),
    addWorkspace: sql('INSERT INTO workspace (one, name, created_at) VALUES (1, ?, ?)'),

    logs: sql('SELECT * FROM log ORDER BY key'),
    log: sql('SELECT * FROM log WHERE name = ?'),
    addLog: sql(`INSERT INTO log (name, identity, head, chain, signature, state, moved_to, serials, created_at)
      VALUES (?, ?, 0, ?, ?, 'open', NULL, '{}', ?) ON CONFLICT (name) DO NOTHING`),
    moveHead: sql('UPDATE log SET head = ?, chain = ?, signature = ?, serials = ? WHERE key = ?'),
    epochs: sql('SELECT epoch, after, why, at FROM epoch WHERE log = ? ORDER BY seq'),
    addEpoch: sql(`INSERT INTO epoch (log, seq, epoch, after, why, at)
      VALUES (?, (SELECT 1 + COALESCE(MAX(seq), 0) FROM epoch WHERE log = ?), ?, ?, ?, ?)`),

    chainAt: sql('SELECT chain FROM event WHERE place = ?'),
    signatureAt: sql('SELECT signature FROM operation WHERE last_place = ?'),

    operationByRequest: sql(`SELECT ${OPERATION}, identity FROM operation WHERE request_id = ? AND log = ?`),
    operationByAction: sql(`SELECT ${OPERATION}, identity FROM operation WHERE action_id = ? AND log = ?`),
    actionAnywhere: sql('SELECT 1 FROM operation WHERE action_id = ? LIMIT 1'),
    addOperation:
      sql(`INSERT INTO operation (last_place, log, count, request_id, action_id, identity, replica_id, actor,
      recorded_at, origin, signature, bytes, part_events) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),

    eventById: sql(`SELECT event.place, event.id, event.entity_version, event.prior, event.draft, entity.type,
      entity.id AS entity_id FROM event JOIN entity ON entity.key = event.entity WHERE event.id = ? AND event.log = ?`),
    eventAt: sql('SELECT place, id, entity_version, previous, prior, draft FROM event WHERE place = ?'),
    previousOf: sql('SELECT entity_version, previous FROM event WHERE place = ?'),
    results: sql('SELECT id, entity_version, assigned FROM event WHERE place > ? AND place <= ? ORDER BY place'),
    addEvent: sql(`INSERT INTO event (place, log, id, entity, entity_version, previous, prior, assigned, chain, draft)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),

    entity: sql(`SELECT ${ENTITY} FROM entity WHERE log = ? AND type = ? AND id = ?`),
    addEntity:
      sql(`INSERT INTO entity (log, type, id, version, last_version, fields, created_by, created_at, updated_by,
      updated_at, arrival, assigned) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    changeEntity: sql(`UPDATE entity SET version = ?, last_version = ?, fields = ?, created_by = ?, created_at = ?,
      updated_by = ?, updated_at = ?, arrival = ?, assigned = ? WHERE key = ?`),
    typeDefinition: sql(`SELECT fields FROM entity JOIN log ON log.key = entity.log
      WHERE log.name IN (?, 'main') AND type = ? AND id = ? AND fields IS NOT NULL ORDER BY log.name = 'main' DESC`),
    countLive: sql('SELECT COUNT(*) AS n FROM entity WHERE log = ? AND type = ? AND fields IS NOT NULL'),

    replica: sql('SELECT id, account, generation, instance FROM replica WHERE id = ?'),
    putReplica: sql(`INSERT INTO replica (id, account, generation, instance, first_seen_at, last_seen_at, app, health)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET generation = excluded.generation,
      instance = excluded.instance, last_seen_at = excluded.last_seen_at, app = COALESCE(excluded.app, app),
      health = COALESCE(excluded.health, health)`),
    permit: sql('SELECT generation, number FROM permit WHERE log = ? AND replica = ?'),
    putPermit: sql(`INSERT INTO permit (log, replica, generation, number, proven, seen_at) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (log, replica) DO UPDATE SET generation = excluded.generation, number = excluded.number,
      proven = MAX(proven, excluded.proven), seen_at = excluded.seen_at`),
    raiseProven: sql('UPDATE permit SET proven = MAX(proven, ?) WHERE log = ? AND replica = ?'),
    replicas: sql(`SELECT id, account, generation, instance, first_seen_at, app, health,
      MAX(last_seen_at, COALESCE((SELECT MAX(seen_at) FROM permit WHERE replica = id), '')) AS last_seen_at
      FROM replica ORDER BY id`),
    proven: sql('SELECT replica, log.name, proven FROM permit JOIN log ON log.key = permit.log WHERE proven > 0'),

    outlines: sql(`SELECT ${OPERATION} FROM operation
      WHERE last_place > ? AND last_place < ? ORDER BY last_place LIMIT ?`),
    operationOf: sql(`SELECT ${OPERATION} FROM operation WHERE last_place >= ? ORDER BY last_place LIMIT 1`),
    eventTexts: sql(`SELECT place, entity_version, assigned, leaf, draft FROM event
      WHERE place > ? AND place <= ? ORDER BY place`),
    chains: sql('SELECT place, chain FROM event WHERE place > ? AND place <= ? ORDER BY place'),
    eventText: sql('SELECT place, entity_version, assigned, leaf, draft FROM event WHERE place = ?'),
    entitiesOfType: sql(`SELECT ${ENTITY} FROM entity
      WHERE log = ? AND type = ? AND id > ? AND fields IS NOT NULL ORDER BY type, id`),
    entitiesBut: sql(`SELECT ${ENTITY} FROM entity
      WHERE log = ? AND (type, id) > (?, ?) AND type <> ? AND fields IS NOT NULL ORDER BY type, id`),
    usage: sql(`SELECT (SELECT COUNT(*) FROM operation WHERE log = ?1) AS operations,
      (SELECT COUNT(*) FROM entity WHERE log = ?1 AND fields IS NOT NULL) AS entities,
      (SELECT COUNT(*) FROM permit WHERE log = ?1) AS replicas,
      (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) AS bytes`),
  };
}
