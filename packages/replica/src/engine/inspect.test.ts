import { defineSchema, entity, schemaData, text } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine, type Finding } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** A replica with everything that there is to look at: events, rows, work that waits, work on the desk. */
const schema = schemaData(defineSchema({ issue: entity({ title: text() }), plan: entity({ name: text() }) }));
let ana: Device;
let waiting: string;
let parked: string;

beforeEach(() => {
  const ledger = new TinyLedger(nodeDigest);
  const ben = new Device({ schema, seed: 7, account: 'ben' });
  ana = new Device({ schema, seed: 1 });
  for (const one of [ben, ana]) one.bootstrap(ledger);
  for (const id of ['i0', 'i1', 'i2']) ben.create('issue', { title: 'confirmed' }, id);
  ben.create('plan', { name: 'first' }, 'p');
  ben.settle(ledger);
  ana.settle(ledger);
  parked = ana.update('plan', 'p', { name: 'of Ana' });
  ben.update('plan', 'p', { name: 'of Ben' });
  ben.settle(ledger);
  ana.settle(ledger);
  waiting = ana.update('issue', 'i0', { title: 'waits' });
  ben.remove();
});
afterEach(() => ana.remove());

/** What somebody with a pen did to the file, what must find it, and how often. */
interface Tamper {
  readonly check: Finding['check'];
  readonly what: string;
  readonly sql: () => string;
  readonly count?: number;
}

const TAMPERS: readonly Tamper[] = [
  {
    check: 'sqlite',
    what: 'a row that its table forbids',
    sql: () => `PRAGMA ignore_check_constraints = ON;
      INSERT INTO main.hf_coordinator (one, replica_id, ledger, account, workspace)
        SELECT 2, replica_id, ledger, account, workspace FROM main.hf_coordinator;
      PRAGMA ignore_check_constraints = OFF`,
  },
  {
    check: 'chain',
    what: 'an event of long ago',
    // The link into it is broken, and the link out of it still fits: what is stored there is what was.
    sql: () => `UPDATE main.hf_event SET draft = replace(draft, 'confirmed', 'forged') WHERE version = 2`,
  },
  {
    check: 'chain',
    what: 'a link of long ago',
    sql: () => `UPDATE main.hf_event SET chain = '${'0'.repeat(64)}' WHERE version = 2`,
    count: 2,
  },
  { check: 'cursor', what: 'a head that runs ahead', sql: () => 'UPDATE main.hf_log SET head = head + 1' },
  {
    check: 'cursor',
    what: 'an event that is gone',
    sql: () => 'DELETE FROM main.hf_event WHERE version = (SELECT head FROM main.hf_log)',
  },
  { check: 'signature', what: 'a confirmed row', sql: () => `UPDATE main.issue SET title = 'forged' WHERE _id = 'i1'` },
  { check: 'signature', what: 'a confirmed row that is gone', sql: () => `DELETE FROM main.issue WHERE _id = 'i2'` },
  {
    check: 'projection',
    what: 'a row with waiting work',
    sql: () => `UPDATE main.issue SET title = 'forged' WHERE _id = 'i0'`,
  },
  {
    check: 'outbox',
    what: 'work that is held by what is nowhere, and is shown all the same',
    sql: () => `UPDATE main.hf_outbox SET held_by = 'gone' WHERE action_id = '${waiting}'`,
    count: 2,
  },
  {
    check: 'outbox',
    what: 'work that is held and is shown all the same',
    sql: () => `UPDATE main.hf_outbox SET held_by = '${parked}' WHERE action_id = '${waiting}'`,
  },
  {
    check: 'outbox',
    what: 'a row that stands on work which is nowhere',
    sql: () => `UPDATE main.issue SET _base = json_insert(_base, '$[1][#]', 999) WHERE _id = 'i0'`,
  },
  {
    check: 'conservation',
    what: 'one commit in two places',
    sql: () => `INSERT INTO main.hf_outcome (action_id, identity, outcome, at)
      SELECT action_id, identity, '{"state":"discarded"}', 0 FROM main.hf_outbox WHERE action_id = '${waiting}'`,
  },
  {
    check: 'permits',
    what: 'a request under no permit',
    sql: () => `UPDATE main.hf_outbox SET state = 'sending' WHERE action_id = '${waiting}'`,
  },
  {
    check: 'permits',
    what: 'a local commit left half done',
    sql: () => `INSERT INTO main.hf_permit (permit_id, log, generation, number, host_instance, owner_mode, class, state,
      disposition, issued_at, due_at, moved_at) VALUES ('x', 'main', 1, 1, 'h', 'host', 'push', 'local-commit-entered',
      'none', 't', 't', 't')`,
  },
  {
    check: 'desk',
    what: 'parked work that nobody is asked about',
    sql: () => `DELETE FROM main.hf_desk WHERE action_id = '${parked}'`,
  },
  {
    check: 'desk',
    what: 'work that flows while somebody is asked about it',
    sql: () => `UPDATE main.hf_desk SET action_id = '${waiting}' WHERE action_id = '${parked}'`,
    count: 2,
  },
];

test('[I02 I07 I08 I11 I13 I20] the file of these tests has nothing to find, and everything to look at', () => {
  expect(examine(ana.state.store)).toEqual({
    findings: [],
    checked: { logs: 1, events: ana.head, entities: 4, batches: 2, permits: 0, obligations: 0 },
  });
});

test.each(TAMPERS)(
  '[I02 I07 I08 I11 I13 I20] the doctor finds $what: $check, and nothing else',
  ({ check, sql, count = 1 }) => {
    ana.database.exec(sql());
    const { findings } = examine(ana.state.store);
    expect(findings.map((finding) => finding.check)).toEqual(Array.from({ length: count }, () => check));
    // Whoever follows the advice keeps what is unsent.
    for (const { next } of findings) expect(next).toMatch(/unsent|Nothing is lost|sent again/);
  },
);

test('every check of the doctor has been seen to fire', () => {
  const checks: Record<Finding['check'], true> = {
    sqlite: true,
    chain: true,
    cursor: true,
    signature: true,
    projection: true,
    outbox: true,
    conservation: true,
    permits: true,
    desk: true,
  };
  expect(new Set(TAMPERS.map(({ check }) => check))).toEqual(new Set(Object.keys(checks)));
});
