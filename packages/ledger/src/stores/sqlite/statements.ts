import type { DatabaseSync } from 'node:sqlite';

const OUTLINE = `place, count, nth, request_id, action_id, replica_id, actor, recorded_at, origin,
  lower(hex(signature)) AS signature, bytes, part_events`;
const EVENT = `place, entity_version, previous, draft, COALESCE(draft, erased) ->> '$.id' AS id,
  COALESCE(draft, erased) ->> '$.prior' AS prior`;
const TEXT = `place, entity_version, assigned, erased ->> '$.leaf' AS leaf, draft`;
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
    head: sql(`SELECT place, lower(hex(chain)) AS chain, lower(hex(signature)) AS signature, nth FROM event
      WHERE place > ? AND place < ? ORDER BY place DESC LIMIT 1`),
    addLog: sql(`INSERT INTO log (name, identity, chain, signature, state, moved_to, serials, created_at)
      VALUES (?, ?, ?, ?, 'open', NULL, '{}', ?) ON CONFLICT (name) DO NOTHING`),
    setSerials: sql('UPDATE log SET serials = ? WHERE key = ?'),
    epochs: sql('SELECT epoch, after, why, at FROM epoch WHERE log = ? ORDER BY seq'),
    addEpoch: sql(`INSERT INTO epoch (log, seq, epoch, after, why, at)
      VALUES (?, (SELECT 1 + COALESCE(MAX(seq), 0) FROM epoch WHERE log = ?), ?, ?, ?, ?)`),

    chainAt: sql('SELECT lower(hex(chain)) AS chain FROM event WHERE place = ?'),
    signatureAt: sql('SELECT lower(hex(signature)) AS signature FROM event WHERE place = ? AND count IS NOT NULL'),

    // Both take a list of names in two forms, `[hex or null, text, …]`: see `nameOf`.
    names: sql(`SELECT wanted.value ->> 1 AS id, log, kind, place FROM json_each(?) AS wanted
      CROSS JOIN name ON name.id = COALESCE(unhex(wanted.value ->> 0), wanted.value ->> 1)`),
    addNames: sql(`INSERT INTO name (id, log, kind, place)
      SELECT COALESCE(unhex(value ->> 0), value ->> 1), ?, value ->> 2, value ->> 3 FROM json_each(?)`),

    operationAt: sql(`SELECT ${OUTLINE}, lower(hex(identity)) AS identity FROM event WHERE place = ?`),
    results: sql(`SELECT entity_version, assigned,
      CASE WHEN assigned IS NOT NULL THEN COALESCE(draft, erased) ->> '$.id' END AS id
      FROM event WHERE place > ? AND place <= ? ORDER BY place`),

    namedEvent: sql(`SELECT ${EVENT}, type, entity_id FROM (SELECT event.*, entity.type, entity.id AS entity_id
      FROM event JOIN entity ON entity.key = event.entity WHERE event.place = ?)`),
    eventAt: sql(`SELECT ${EVENT} FROM event WHERE place = ?`),
    previousOf: sql('SELECT entity_version, previous FROM event WHERE place = ?'),
    addEvent: sql(`INSERT INTO event (place, entity, entity_version, previous, chain, assigned, draft)
      VALUES (?, ?, ?, ?, unhex(?), ?, ?)`),
    addLastEvent: sql(`INSERT INTO event (place, entity, entity_version, previous, chain, assigned, draft,
      count, nth, request_id, action_id, identity, replica_id, actor, recorded_at, origin, signature, bytes, part_events)
      VALUES (?, ?, ?, ?, unhex(?), ?, ?, ?, ?, ?, ?, unhex(?), ?, ?, ?, ?, unhex(?), ?, ?)`),

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

    outlines: sql(`SELECT ${OUTLINE} FROM event WHERE place > ? AND place <= ? AND count IS NOT NULL ORDER BY place`),
    operationOf: sql(`SELECT ${OUTLINE} FROM event
      WHERE place >= ? AND place < ? AND count IS NOT NULL ORDER BY place LIMIT 1`),
    eventTexts: sql(`SELECT ${TEXT} FROM event WHERE place > ? AND place <= ? ORDER BY place`),
    chains: sql('SELECT place, lower(hex(chain)) AS chain FROM event WHERE place > ? AND place <= ? ORDER BY place'),
    eventText: sql(`SELECT ${TEXT} FROM event WHERE place = ?`),
    entitiesOfType: sql(`SELECT ${ENTITY} FROM entity
      WHERE log = ? AND type = ? AND id > ? AND fields IS NOT NULL ORDER BY type, id`),
    entitiesBut: sql(`SELECT ${ENTITY} FROM entity
      WHERE log = ? AND (type, id) > (?, ?) AND type <> ? AND fields IS NOT NULL ORDER BY type, id`),
    usage: sql(`SELECT (SELECT COUNT(*) FROM entity WHERE log = ?1 AND fields IS NOT NULL) AS entities,
      (SELECT COUNT(*) FROM permit WHERE log = ?1) AS replicas,
      (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) AS bytes`),
  };
}
