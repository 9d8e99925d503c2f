import type { DatabaseSync } from 'node:sqlite';
import { type Digest, operationIdentity } from '@holdfast/core';
import type { StoreFinding } from '../../engine/store-port.ts';
import { placeAfterLog, placeOf, versionAt } from './format.ts';
import type { FoundLog } from './workspace-file.ts';

/**
 * What a file says twice, compared: in one snapshot, by SQL, beside a ledger that may be running. Knows nothing of what
 * events mean; chain, state and signature are the engine's to compute. Reads everything of the log once for each check.
 */
export function examineLog(db: DatabaseSync, log: FoundLog, digest: Digest, max: number): readonly StoreFinding[] {
  const found: StoreFinding[] = [];
  const find = (finding: StoreFinding): void => {
    if (found.length < max) found.push(finding);
  };
  const range = { log: log.key, from: placeOf(log.key, 0), to: placeAfterLog(log.key) };
  db.exec('BEGIN');
  try {
    checkFile(db, max, find);
    for (const check of CHECKS)
      for (const row of db.prepare(`${check.sql} LIMIT ${max}`).iterate(bound(check.sql, range)) as Iterable<Row>)
        find({ what: check.what, ...placed(row), expected: text(row.expected), found: text(row.found) });
    checkIdentities(db, range, digest, find);
  } finally {
    db.exec('ROLLBACK');
  }
  return found;
}

type Find = (finding: StoreFinding) => void;
interface Row {
  readonly place?: number | null;
  readonly type?: string | null;
  readonly id?: string | null;
  readonly expected: unknown;
  readonly found: unknown;
}
interface Range {
  readonly log: number;
  readonly from: number;
  readonly to: number;
}

/** Medium and indexes, of the whole workspace: its logs share the file. */
function checkFile(db: DatabaseSync, max: number, find: Find): void {
  for (const row of db.prepare(`PRAGMA integrity_check(${max})`).all()) {
    const said = text(Object.values(row)[0]);
    if (said !== 'ok') find({ what: 'file', expected: 'ok', found: said });
  }
}

/** LG2: a request that comes again is known by what it was, so that must be what its events are. */
function checkIdentities(db: DatabaseSync, { from, to }: Range, digest: Digest, find: Find): void {
  const rows = db
    .prepare(
      `SELECT place, draft, count, action_id, lower(hex(identity)) AS identity FROM event
      WHERE place > ? AND place < ? ORDER BY place`,
    )
    .iterate(from, to) as Iterable<Record<string, unknown>>;
  let drafts: (string | null)[] = [];
  for (const row of rows) {
    drafts.push(row['draft'] as string | null);
    if (row['count'] === null) continue;
    const whole = drafts.filter((draft) => draft !== null);
    // What was erased cannot be computed again.
    if (whole.length === drafts.length) {
      const expected = operationIdentity(row['action_id'] as string, whole, digest);
      if (expected !== row['identity'])
        find({
          what: 'remembered',
          version: versionAt(row['place'] as number),
          expected,
          found: text(row['identity']),
        });
    }
    drafts = [];
  }
}

const DRAFT_ID = "COALESCE(draft, erased) ->> '$.id'";
/** An id as `nameOf` writes it: sixteen bytes, or the text. */
const isName = (name: string, id: string): string => `${name} IN (unhex(replace(${id}, '-', '')), ${id})`;
const IN_LOG = 'place > $from AND place < $to';

/** Each gives what should be and what is. `$log`, `$from` and `$to` are the log's key and the places around its events. */
const CHECKS: readonly { readonly what: StoreFinding['what']; readonly sql: string }[] = [
  {
    // Operations follow each other without a gap, and are counted.
    what: 'operation',
    sql: `SELECT place, ends || ' ' || number AS expected, place - count || ' ' || nth AS found FROM (
        SELECT place, count, nth, lag(place, 1, $from) OVER (ORDER BY place) AS ends,
          row_number() OVER (ORDER BY place) AS number FROM event WHERE ${IN_LOG} AND count IS NOT NULL)
      WHERE place - count <> ends OR nth IS NOT number`,
  },
  {
    // LG2: every request, action and event that the log has is found by its id.
    what: 'remembered',
    sql: `SELECT place, kind || ' ' || wanted.id AS expected, 'not known' AS found FROM (
        SELECT place, 1 AS kind, request_id AS id FROM event WHERE ${IN_LOG} AND count IS NOT NULL
        UNION ALL SELECT place, 2, action_id FROM event WHERE ${IN_LOG} AND count IS NOT NULL
        UNION ALL SELECT place, 3, ${DRAFT_ID} FROM event WHERE ${IN_LOG}) AS wanted
      WHERE NOT EXISTS (SELECT 1 FROM name WHERE ${isName('name.id', 'wanted.id')} AND name.log = $log
        AND name.kind = wanted.kind AND name.place = wanted.place)`,
  },
  {
    // LG2, the other way: nothing is known that the log does not have.
    what: 'remembered',
    sql: `SELECT name.place, 'not known' AS expected,
        name.kind || ' ' || CASE typeof(name.id) WHEN 'blob' THEN lower(hex(name.id)) ELSE name.id END AS found
      FROM name LEFT JOIN event ON event.place = name.place
      WHERE name.log = $log AND COALESCE(CASE name.kind
        WHEN 1 THEN ${isName('name.id', 'request_id')}
        WHEN 2 THEN ${isName('name.id', 'action_id')}
        WHEN 3 THEN ${isName('name.id', DRAFT_ID)} END, 0) = 0`,
  },
  {
    // The events of one entity are a list, and the entity names its last one.
    what: 'history',
    sql: `SELECT place, before AS expected, previous AS found FROM (SELECT place, previous,
        lag(place - $from, 1, 0) OVER (PARTITION BY entity ORDER BY place) AS before FROM event WHERE ${IN_LOG})
      WHERE previous <> before`,
  },
  {
    what: 'history',
    sql: `SELECT type, id, last || ' ' || versions AS expected, last_version || ' ' || version AS found FROM entity
      LEFT JOIN (SELECT entity, MAX(place) - $from AS last, MAX(entity_version) AS versions
        FROM event WHERE ${IN_LOG} GROUP BY entity) AS events ON events.entity = entity.key
      WHERE log = $log AND (last IS NOT last_version OR versions IS NOT version)`,
  },
  {
    // LG8: whoever wrote here has a fence, and none of its permits is of a generation that never was.
    what: 'fence',
    sql: `SELECT 'a fence and a permit of ' || replica_id AS expected, 'none' AS found FROM (
        SELECT DISTINCT replica_id FROM event WHERE ${IN_LOG} AND count IS NOT NULL)
      WHERE NOT EXISTS (SELECT 1 FROM replica WHERE id = replica_id)
        OR NOT EXISTS (SELECT 1 FROM permit WHERE log = $log AND replica = replica_id)`,
  },
  {
    what: 'fence',
    sql: `SELECT 'generation of ' || replica || ' up to ' || COALESCE(replica.generation, 0) AS expected,
        permit.generation AS found
      FROM permit LEFT JOIN replica ON replica.id = permit.replica
      WHERE log = $log AND permit.generation > COALESCE(replica.generation, 0)`,
  },
  {
    // RT7: nobody proved more than there is.
    what: 'fence',
    sql: `SELECT 'proven of ' || replica || ' up to ' || head AS expected, proven AS found FROM (SELECT permit.*,
        COALESCE((SELECT MAX(place) - $from FROM event WHERE ${IN_LOG}), 0) AS head FROM permit WHERE log = $log)
      WHERE proven > head`,
  },
  {
    // LG7: a counter stands at the highest number that it gave, or it gives one twice.
    what: 'serial',
    sql: `SELECT counter || ' at ' || highest AS expected, COALESCE(serials.value, 0) AS found FROM (
        SELECT entity.type || '.' || given.key AS counter, MAX(given.value) AS highest
        FROM event JOIN entity ON entity.key = event.entity, json_each(event.assigned) AS given
        WHERE ${IN_LOG} GROUP BY 1) AS numbers
      LEFT JOIN (SELECT each.key, each.value FROM log, json_each(log.serials) AS each WHERE log.key = $log) AS serials
        ON serials.key = numbers.counter
      WHERE COALESCE(serials.value, 0) < highest`,
  },
  {
    what: 'serial',
    sql: `SELECT entity.type || '.' || given.key || ' ' || given.value || ' once' AS expected,
        COUNT(DISTINCT entity.key) AS found
      FROM event JOIN entity ON entity.key = event.entity, json_each(event.assigned) AS given
      WHERE ${IN_LOG} GROUP BY entity.type, given.key, given.value HAVING COUNT(DISTINCT entity.key) > 1`,
  },
];

/** `node:sqlite` refuses a value that no statement asks for. */
const bound = (sql: string, range: Range): Record<string, number> =>
  Object.fromEntries(Object.entries(range).filter(([name]) => sql.includes(`$${name}`)));

const placed = ({ place, type, id }: Row): Pick<StoreFinding, 'version' | 'entity'> => ({
  ...(place == null ? {} : { version: versionAt(place) }),
  ...(type == null || id == null ? {} : { entity: { type, id } }),
});

const text = (value: unknown): string => String(value ?? 'nothing');
