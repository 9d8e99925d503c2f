import {
  defineSchema,
  type EntityData,
  entity,
  type JsonObject,
  LIMITS,
  RUN_TIME_TYPE,
  schemaData,
  text,
} from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { createSeededRandom } from '../testing/seeded-random.ts';
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

test('[SC4 SC1] a type with as many fields as there may be stops nobody who gets it with a row, and is widened', () => {
  const ledger = new TinyLedger(nodeDigest);
  const [device, other] = [connected(ledger), connected(ledger, 'ben')];
  const names = Array.from({ length: LIMITS.fieldsPerEntityMax }, (_, at) => `f${at}`);
  const wide = (count: number): EntityData => ({
    fields: Object.fromEntries(names.slice(0, count).map((name) => [name, { kind: 'text', default: '' } as const])),
  });
  define(device, 'wide', wide(names.length - 1));
  device.create('wide', { f0: 'A' }, 'w1');
  define(device, 'wide', wide(names.length));
  for (const one of [device, other, connected(ledger, 'cem')]) {
    one.settle(ledger);
    expect(query(one, `SELECT f0, ${names.at(-1)} AS last FROM wide`)).toEqual([{ f0: 'A', last: '' }]);
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

const NAMES = ['plane', 'planE', 'team', 'issue'];
const KINDS = ['text', 'integer', 'flag', 'json'] as const;

test.each([1, 2, 3, 158])(
  '[SC4 SC6 DG2] whatever is defined by whom and when (seed %i), who has the same state has the same tables',
  (seed) => {
    const random = createSeededRandom(seed);
    const upTo = (max: number): number => Math.floor(random.unit() * max);
    const oneOf = <T>(list: readonly T[]): T => list[upTo(list.length)] as T;
    const definition = (): EntityData => ({
      fields: Object.fromEntries(['a', 'b', 'c'].slice(0, 1 + upTo(3)).map((name) => [name, { kind: oneOf(KINDS) }])),
    });
    const ledger = new TinyLedger(nodeDigest);
    const people = [connected(ledger, 'ana'), connected(ledger, 'ben')];
    let accepted = 0;
    for (let step = 0; step < 40; step += 1) {
      const device = oneOf(people);
      const kind = upTo(6);
      if (kind === 0) say(ledger, oneOf(NAMES), definition());
      else if (kind === 1) {
        const change = { do: 'put', entity: RUN_TIME_TYPE, id: oneOf(NAMES) } as const;
        const fields = { schema: definition() as unknown as JsonObject };
        if (device.state.commit(device.request([{ ...change, fields }])).ok) accepted += 1;
      } else if (kind === 2) {
        const [type, data] = oneOf(Object.entries(device.state.types())) ?? [];
        if (type === undefined || data === undefined) continue;
        const values = { text: 't', integer: step, flag: true, json: [step] };
        const fields = Object.entries(data.fields).map(([name, one]) => [name, values[one.kind as 'text']] as const);
        device.create(type, Object.fromEntries(fields) as JsonObject);
        accepted += 1;
      } else if (kind === 3) device.reopen();
      else if (kind === 4) device.fetch(ledger, 'repair', 3);
      else device.settle(ledger);
    }
    expect(accepted).toBeGreaterThan(0);
    for (const device of people) for (const one of device.state.desk()) device.state.discard([one.id]);
    for (const device of [...people, ...people]) device.settle(ledger);
    const late = connected(ledger, 'cem');
    for (const device of people) {
      expectSound(device, ledger);
      expect(device.state.types()).toEqual(late.state.types());
      expect(device.state.typeFaults()).toEqual(late.state.typeFaults());
    }
    const rows = (device: Device) =>
      Object.keys(late.state.types()).map((type) => query(device, `SELECT * FROM ${type} ORDER BY id`));
    expect(people.map(rows)).toEqual([rows(late), rows(late)]);
  },
);
