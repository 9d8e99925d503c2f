import type { DatabaseSync } from 'node:sqlite';
import { defineSchema, entity, schemaData, serial, text } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDatabase } from '../stores/sqlite/workspace-file.ts';
import { Author } from './drafts.fixture.ts';
import type { VerifyProblem } from './engine.ts';
import { REF, type World, world } from './world.fixture.ts';

/** A ledger of five events by two replicas: numbers, a deletion, an operation of two events, a second generation. */
const schema = schemaData(defineSchema({ issue: entity({ number: serial({ wire: 'no' }), title: text() }) }));
let w: World;
let file: DatabaseSync;

beforeEach(async () => {
  w = world(
    { schema },
    {
      open: (path, options) => {
        file = openDatabase(path, options);
        return file;
      },
    },
  );
  const a = new Author('a');
  await w.accept(a, a.create('e1'), a.create('e2'));
  await w.accept(a, a.set('e1', { title: 'two' }, 1));
  const b = new Author('b', 2);
  await w.accept(b, b.draft({ op: 'delete' }, { entityId: 'e2', base: 1 }));
  await w.accept(b, b.create('e3'));
});
afterEach(() => w[Symbol.asyncDispose]());

interface Tamper {
  readonly check: VerifyProblem['what'];
  readonly what: string;
  readonly sql: string;
  readonly count?: number;
}

const version = (at: number): string => `place = (SELECT MIN(place) FROM event) + ${at - 1}`;

const TAMPERS: readonly Tamper[] = [
  {
    check: 'chain',
    what: 'a link',
    sql: `UPDATE event SET chain = zeroblob(32) WHERE ${version(3)}`,
    // The link into it, and the link out of it.
    count: 2,
  },
  {
    check: 'signature',
    what: 'the signature after an operation',
    sql: `UPDATE event SET signature = zeroblob(32) WHERE ${version(3)}`,
  },
  {
    check: 'entity',
    what: 'the state of an entity',
    sql: `UPDATE entity SET fields = json_set(fields, '$.title', 'forged') WHERE id = 'e1'`,
  },
  {
    check: 'entity',
    what: 'an entity that is deleted in silence',
    sql: `UPDATE entity SET fields = NULL WHERE id = 'e3'`,
  },
  {
    check: 'operation',
    what: 'the count of operations',
    sql: `UPDATE event SET nth = nth + 1 WHERE ${version(4)}`,
  },
  {
    check: 'remembered',
    what: 'a request that is not known any more',
    sql: `DELETE FROM name WHERE kind = 1 AND ${version(3)}`,
  },
  {
    check: 'remembered',
    what: 'an action that is not known any more',
    sql: `DELETE FROM name WHERE kind = 2 AND ${version(3)}`,
  },
  {
    check: 'remembered',
    what: 'an event that is not known any more',
    sql: `DELETE FROM name WHERE kind = 3 AND ${version(1)}`,
  },
  {
    check: 'remembered',
    what: 'a request that leads to another one',
    // Not found where it is, and found where it is not.
    sql: `UPDATE name SET place = place - 1 WHERE kind = 1 AND ${version(4)}`,
    count: 2,
  },
  {
    check: 'remembered',
    what: 'a request that never was',
    sql: `INSERT INTO name (id, log, kind, place) SELECT 'never', log, 1, place FROM name WHERE kind = 1 AND ${version(5)}`,
  },
  {
    check: 'remembered',
    what: 'what a request was',
    sql: `UPDATE event SET identity = zeroblob(32) WHERE ${version(2)}`,
  },
  {
    check: 'history',
    what: 'an event that is left out of its entity’s list',
    sql: `UPDATE event SET previous = 0 WHERE ${version(3)}`,
  },
  {
    check: 'history',
    what: 'the last event of an entity that is deleted',
    sql: `UPDATE entity SET last_version = last_version - 1 WHERE id = 'e2'`,
  },
  { check: 'fence', what: 'a fence that is gone', sql: `DELETE FROM replica WHERE id = 'a'`, count: 2 },
  { check: 'fence', what: 'permits of a replica that are gone', sql: `DELETE FROM permit WHERE replica = 'b'` },
  {
    check: 'fence',
    what: 'a generation that went back',
    sql: `UPDATE replica SET generation = generation - 1 WHERE id = 'b'`,
  },
  {
    check: 'fence',
    what: 'a position that nobody can have proven',
    sql: `UPDATE permit SET proven = 99 WHERE replica = 'a'`,
  },
  {
    check: 'serial',
    what: 'a counter that went back',
    sql: `UPDATE log SET serials = json_set(serials, '$."issue.no"', 1)`,
  },
  { check: 'serial', what: 'a counter that is gone', sql: `UPDATE log SET serials = '{}'` },
  {
    check: 'file',
    what: 'an index that does not fit its table',
    // Another program's index, which no statement of the ledger reads: only its rows are of another column.
    sql: `CREATE INDEX other ON entity (created_at); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE INDEX other ON entity (id)' WHERE name = 'other';
      PRAGMA writable_schema = RESET`,
    count: 3,
  },
];

test('[LG2 LG7 LG8] the log of these tests has nothing to find', async () => {
  expect(await w.engine.verify(REF)).toMatchObject({ events: 5, entities: 2, problems: [] });
});

test.each(TAMPERS)(
  '[LG2 LG7 LG8 DG2] verify finds $what: $check, and nothing else',
  async ({ check, sql, count = 1 }) => {
    file.enableDefensive(false);
    file.exec(sql);
    await using again = await w.restart();
    const report = await again.engine.verify(REF);
    expect(report?.problems.map(({ what }) => what)).toEqual(Array.from({ length: count }, () => check));
  },
);
