import {
  defineSchema,
  type EntityData,
  entity,
  type JsonObject,
  RUN_TIME_TYPE,
  schemaData,
  text,
} from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Which tables run-time types have: decided by what is defined, never by who came when. */

const schema = schemaData(defineSchema({ issue: entity({ title: text() }) }));
const team: EntityData = { fields: { name: { kind: 'text' }, size: { kind: 'integer', default: 1 } } };

const devices: Device[] = [];
function connected(ledger: TinyLedger, account = 'ana'): Device {
  const device = new Device({ schema, seed: devices.length + 1, account });
  devices.push(device);
  device.bootstrap(ledger);
  return device;
}
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});

/** This ledger checks nothing. */
function say(ledger: TinyLedger, type: string, data: EntityData): void {
  const id = `said-${ledger.head}`;
  const facts = { at: '2026-01-01T00:00:00.000Z', salt: '0'.repeat(32), type: `${RUN_TIME_TYPE}.created`, base: 0 };
  const change = { op: 'put', set: { schema: data as unknown as JsonObject } };
  const event = { ...facts, id, entityType: RUN_TIME_TYPE, entityId: type, change };
  ledger.push([{ requestId: id, actionId: id, merge: 'fields', events: [event] } as never], {
    actor: 'root',
    replicaId: 'f'.repeat(32),
  });
}
const query = (device: Device, sql: string) =>
  device.database
    .prepareQuery(sql)
    .statement.all()
    .map((row) => ({ ...row }));
function expectSound(device: Device, ledger: TinyLedger): void {
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
}

const withItem = (name: string) =>
  schemaData(defineSchema({ [name]: entity({ name: text(), size: text({ optional: true }) }) }));

test.each(['teamitem', 'teamItem'])(
  '[SC7 SC6] an app version that declares %s after a run-time type teamItem has a table of its own kinds, and loses nothing',
  (name) => {
    const ledger = new TinyLedger(nodeDigest);
    const device = connected(ledger);
    say(ledger, 'teamItem', team);
    device.pullAll(ledger);
    device.create('teamItem', { name: 'A', size: 4 }, 't1');
    device.settle(ledger);
    device.create('teamItem', { name: 'B' }, 't2');
    device.reopen(withItem(name));
    expect(device.state.typeFaults()).toEqual([{ code: 'type-name-taken', facts: { type: 'teamItem' } }]);
    const isOther = name !== 'teamItem';
    expect(query(device, `SELECT id, name, size FROM ${name} ORDER BY id`)).toEqual(
      isOther
        ? []
        : [
            { id: 't1', name: 'A', size: null },
            { id: 't2', name: 'B', size: null },
          ],
    );
    device.create(name, { name: 'C', size: 'large' }, 'c');
    device.settle(ledger);
    expectSound(device, ledger);
    device.reopen(schema);
    // That version's table stays in the file, and has the name.
    expect(device.state.typeFaults()).toEqual([{ code: 'type-name-taken', facts: { type: 'teamItem' } }]);
    device.settle(ledger);
    expectSound(device, ledger);
    expect(ledger.entity('teamItem', 't1')?.fields).toEqual({ name: 'A', size: 4 });
  },
);

test('[SC7 SC4] of two run-time types that differ only in case the older one has the table, whoever comes when', () => {
  const ledger = new TinyLedger(nodeDigest);
  const device = connected(ledger);
  say(ledger, 'teamitem', team);
  say(ledger, 'teamItem', team);
  device.pullAll(ledger);
  const late = connected(ledger, 'ben');
  for (const one of [device, late]) {
    expect(one.state.typeFaults()).toEqual([{ code: 'type-name-taken', facts: { type: 'teamItem' } }]);
    one.reopen();
    expect([Object.keys(one.state.types()), one.state.typeFaults().length]).toEqual([['teamitem'], 1]);
    expectSound(one, ledger);
  }
});

const define = (device: Device, type: string, data: EntityData) =>
  device.commit([{ do: 'put', entity: RUN_TIME_TYPE, id: type, fields: { schema: data as unknown as JsonObject } }]);

test('[SC4 SC9 ST2] who uses a type that is on its way needs its definition; where that is refused the table goes, and comes back with it', () => {
  const ledger = new TinyLedger(nodeDigest);
  const device = connected(ledger);
  const action = define(device, 'team', team);
  device.create('team', { name: 'A' }, 't1');
  device.update('team', 't1', { size: 2 });
  define(device, 'team', { fields: { ...team.fields, motto: { kind: 'text', optional: true } } });
  device.create('team', { name: 'B', motto: 'M' }, 't2');
  const needs = device.database
    .prepare('SELECT frame FROM main.hf_outbox ORDER BY seq')
    .all()
    .map(({ frame }) => (JSON.parse(frame as string) as JsonObject)['needs']);
  expect(needs).toEqual([undefined, [action], [action], undefined, [expect.any(String)]]);
  // Somebody else was first, with another kind.
  say(ledger, 'team', { fields: { name: { kind: 'text' }, size: { kind: 'text', default: 'S' } } });
  device.settle(ledger);
  expect(query(device, 'SELECT id, size FROM team')).toEqual([]);
  expectSound(device, ledger);
  device.reopen();
  expect(device.state.types()['team']?.fields['size']?.kind).toBe('text');
  expect(device.state.desk().map(({ kind, entity }) => [kind, entity.type])).toEqual([['clash', RUN_TIME_TYPE]]);
});
