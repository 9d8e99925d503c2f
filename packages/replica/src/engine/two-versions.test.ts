import {
  counter,
  type Database,
  defineSchema,
  entity,
  flag,
  integer,
  type Json,
  json,
  number,
  oneOf,
  type RecordedChange,
  type Statement,
  schemaData,
  setOf,
  text,
  time,
} from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
import { contentsOf } from '../testing/file-contents.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Two versions of an app take turns on one file: nothing is lost, and nothing is signed that no event said. */
const older = schemaData(
  defineSchema({
    issue: entity({
      title: text(),
      status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
      labels: setOf(text()),
      votes: counter(),
      note: text({ optional: true }),
    }),
  }),
);
const newer = schemaData(
  defineSchema({
    issue: entity(
      {
        name: text({ wire: 'title' }),
        status: oneOf(['todo', 'doing', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
        labels: setOf(text()),
        votes: counter(),
        note: text({ optional: true }),
        size: integer({ default: 3 }),
        people: setOf(text()),
        likes: counter(),
        extra: json<Json>({ optional: true }),
      },
      { index: [['size']], search: ['name'] },
    ),
    team: entity({ title: text() }),
  }),
);

const devices: Device[] = [];
const newDevice = (options: ConstructorParameters<typeof Device>[0]) => {
  const device = new Device(options);
  devices.push(device);
  return device;
};
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});
const newLedger = () => new TinyLedger(nodeDigest);
const sound = (device: Device) => examine(device.state.store).findings.filter(({ check }) => check !== 'permits');
const fieldsOf = (device: Device, type: string, id: string) =>
  device.state.store.tableOf(type).read('main', id)?.state.fields;

const EDITS: readonly (readonly [string, RecordedChange, RecordedChange])[] = [
  [
    'create',
    { do: 'create', entity: 'issue', id: 'n1', fields: { title: 'old', status: 'todo' } },
    { do: 'create', entity: 'issue', id: 'n2', fields: { name: 'new', status: 'doing', size: 8, extra: { a: [1] } } },
  ],
  [
    'set',
    { do: 'update', entity: 'issue', id: 'i1', set: { title: 'old' } },
    { do: 'update', entity: 'issue', id: 'i1', set: { name: 'new', size: 5, status: 'doing' } },
  ],
  [
    'unset',
    { do: 'update', entity: 'issue', id: 'i1', unset: ['note'] },
    { do: 'update', entity: 'issue', id: 'i1', unset: ['extra'] },
  ],
  [
    'count',
    { do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } },
    { do: 'update', entity: 'issue', id: 'i1', inc: { votes: 2, likes: 4 } },
  ],
  [
    'add to a set',
    { do: 'update', entity: 'issue', id: 'i1', add: { labels: ['old'] } },
    { do: 'update', entity: 'issue', id: 'i1', add: { labels: ['new'], people: ['ben'] } },
  ],
  [
    'take from a set',
    { do: 'update', entity: 'issue', id: 'i1', remove: { labels: ['a'] } },
    { do: 'update', entity: 'issue', id: 'i1', remove: { labels: ['b'], people: ['ana'] } },
  ],
  ['delete', { do: 'delete', entity: 'issue', id: 'i2' }, { do: 'delete', entity: 'issue', id: 'i3' }],
  ['restore', { do: 'restore', entity: 'issue', id: 'gone' }, { do: 'restore', entity: 'issue', id: 'away' }],
];

/** Three issues and two deleted ones, as the newer app writes them, in the log. */
function begun(): { readonly device: Device; readonly ledger: TinyLedger } {
  const ledger = newLedger();
  const device = newDevice({ schema: newer });
  device.bootstrap(ledger);
  for (const id of ['i1', 'i2', 'i3', 'gone', 'away'])
    device.create(
      'issue',
      { name: id, status: 'doing', note: 'n', size: 7, labels: ['a', 'b'], people: ['ana'], extra: 1 },
      id,
    );
  device.create('team', { title: 'T' }, 't1');
  device.settle(ledger);
  device.delete('issue', 'gone');
  device.delete('issue', 'away');
  device.settle(ledger);
  return { device, ledger };
}

const everything = (device: Device) =>
  Object.fromEntries(['i1', 'i2', 'i3', 'gone', 'away', 'n1', 'n2'].map((id) => [id, fieldsOf(device, 'issue', id)]));

test.each(EDITS)(
  '[F130 SC1] %s by the older and the newer app in turn, all unsent: nothing is lost',
  (_name, byOlder, byNewer) => {
    const { device, ledger } = begun();
    device.reopen(older);
    device.commit([byOlder]);
    expect(sound(device)).toEqual([]);
    const afterOlder = everything(device);
    device.reopen(newer);
    expect(everything(device)).toEqual(afterOlder);
    device.commit([byNewer]);
    expect(sound(device)).toEqual([]);
    const afterNewer = everything(device);
    for (const schema of [older, newer, older]) {
      device.reopen(schema);
      expect(everything(device)).toEqual(afterNewer);
      expect(device.state.counts().unsent).toBe(2);
      expect(sound(device)).toEqual([]);
    }
    // The older app sends what the newer one wrote, with columns that it does not name.
    device.settle(ledger);
    expect(device.state.log('main')?.signature).toBe(ledger.signature);
    expect(everything(device)).toEqual(afterNewer);
    device.reopen(newer);
    expect(everything(device)).toEqual(afterNewer);
    expect(ledger.entity('team', 't1')?.fields).toEqual({ title: 'T' });
    expect(sound(device)).toEqual([]);
  },
);

test('[F130 SC1] a file of a newer format is refused with both numbers, and left as it is', () => {
  const { device } = begun();
  device.update('issue', 'i1', { name: 'unsent' });
  device.database.exec('PRAGMA user_version=2');
  const before = contentsOf(device.file);
  expect(() => device.reopen()).toThrow(
    expect.objectContaining({ fault: { code: 'replica-too-new', facts: { format: 2, known: 1 } } }),
  );
  expect(contentsOf(device.file)).toBe(before);
  const file = openNodeDatabase({ file: device.file });
  file.exec('PRAGMA user_version=1');
  file.close();
  device.reopen();
  expect([device.row('issue', 'i1')?.['name'], device.state.counts().unsent]).toEqual(['unsent', 1]);
});

test('[SC1 SC5] each version sees its own columns under its own names, and a value it does not know as it says', () => {
  const { device } = begun();
  device.reopen(older);
  expect(device.row('issue', 'i1')).toMatchObject({ title: 'i1', status: 'todo' });
  expect(device.row('issue', 'i1')).not.toHaveProperty('size');
  device.reopen(newer);
  expect(device.row('issue', 'i1')).toMatchObject({ name: 'i1', status: 'doing', size: 7 });
});

test('[SC5] a default that is only shown is never signed, whichever version opens the file', () => {
  const ledger = newLedger();
  const device = newDevice({ schema: older });
  device.bootstrap(ledger);
  device.create('issue', { title: 'A', status: 'todo' }, 'i1');
  device.settle(ledger);
  const { signature } = ledger;
  for (const schema of [newer, older, newer]) {
    device.reopen(schema);
    expect(device.state.log('main')?.signature).toBe(signature);
    expect(fieldsOf(device, 'issue', 'i1')).toEqual({ title: 'A', status: 'todo' });
    expect(sound(device)).toEqual([]);
  }
  expect(device.row('issue', 'i1')).toMatchObject({ size: 3, likes: 0 });
});

test('[SC1 F130] widening adds tables, columns and indexes, and takes nothing away', () => {
  const device = newDevice({ schema: older });
  const names = () =>
    device.database
      .prepare("SELECT name FROM main.sqlite_master WHERE name NOT LIKE 'sqlite_%'")
      .all()
      .map(({ name }) => name);
  const before = names();
  device.reopen(newer);
  const after = names();
  expect(after).toEqual(expect.arrayContaining([...before, 'team', 'hf_index_issue_size', 'hf_search_issue']));
  device.reopen(older);
  expect(names()).toEqual(after);
});

test('[SC6 F128] entities of a type that the schema lacks are kept, signed, and move when it is declared', () => {
  const ledger = newLedger();
  const ben = newDevice({ schema: newer, account: 'ben', seed: 9 });
  const device = newDevice({ schema: older });
  for (const one of [ben, device]) one.bootstrap(ledger);
  ben.create('team', { title: 'T' }, 't1');
  ben.create('team', { title: 'U' }, 't2');
  ben.settle(ledger);
  ben.update('team', 't1', { title: 'T2' });
  ben.delete('team', 't2');
  ben.settle(ledger);
  device.pullAll(ledger);
  const aside = () => device.database.prepare('SELECT type, id, version, fields FROM main.hf_entity').all();
  expect(aside().map((row) => ({ ...row }))).toEqual([
    { type: 'team', id: 't1', version: 2, fields: '{"title":"T2"}' },
  ]);
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);

  device.reopen(newer);
  expect(aside()).toEqual([]);
  expect(device.row('team', 't1')).toMatchObject({ title: 'T2', sync: 'synced', createdBy: 'ben' });
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);

  // Unsent work on it survives the version that does not know it.
  device.update('team', 't1', { title: 'T3' });
  device.reopen(older);
  expect(sound(device)).toEqual([]);
  device.settle(ledger);
  expect(ledger.entity('team', 't1')?.fields).toEqual({ title: 'T3' });
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);
  device.reopen(newer);
  expect(device.row('team', 't1')).toMatchObject({ title: 'T3', sync: 'synced' });
});

test('[SC6] a state that came whole brings unknown types too', () => {
  const { ledger } = begun();
  const device = newDevice({ schema: older, account: 'ben', seed: 4 });
  device.bootstrap(ledger, 2);
  expect(fieldsOf(device, 'team', 't1')).toEqual({ title: 'T' });
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);
});

test('[SC6] rows of types that the schema lacks are kept in memory by their size, and read again where that was too much', () => {
  const ledger = newLedger();
  const reads: unknown[] = [];
  const telling = (statement: Statement): Statement =>
    new Proxy(statement, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...values: unknown[]): unknown => {
          if (name === 'get') reads.push(values.at(-1));
          return Reflect.apply(member, target, values);
        };
      },
    });
  const isRead = (sql: string) => /^SELECT .* FROM main.hf_entity WHERE log = \? AND type = \? AND id = \?$/.test(sql);
  const through = (database: Database): Database =>
    new Proxy(database, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...values: unknown[]): unknown => {
          const made: unknown = Reflect.apply(member, target, values);
          return name === 'prepare' && isRead(String(values[0])) ? telling(made as Statement) : made;
        };
      },
    });
  const writer = newDevice({ schema: newer, account: 'ben', seed: 6 });
  const device = newDevice({ schema: older, through });
  for (const one of [writer, device]) one.bootstrap(ledger);
  const teams = Array.from({ length: 36 }, (_, at) => `t${at}`);
  const title = 'x'.repeat(60_000);
  for (const id of teams) writer.create('team', { title }, id);
  writer.settle(ledger);
  device.pullAll(ledger);
  reads.length = 0;
  for (const id of ['t0', 't35']) writer.update('team', id, { title: 'short' });
  writer.settle(ledger);
  device.pullAll(ledger);
  // The first was let go, the last is still there.
  expect(reads).toEqual(['t0']);
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
});

// ── every JSON value in every kind of column ────────────────────────────────────────────────────────────────────────

const deep = (depth: number): Json => (depth === 0 ? 1 : [deep(depth - 1)]);
const VALUES: readonly Json[] = [
  '',
  'a',
  'é',
  'e\u0301',
  '\uFEFFbom',
  '\uFFFE\uFFFF',
  '\u202Ertl',
  '😀',
  '2026-01-01T00:00:00.000Z',
  '1',
  'null',
  '{}',
  '[]',
  '\'"`',
  0,
  1,
  -1,
  0.5,
  1e-7,
  5e-324,
  Number.MAX_SAFE_INTEGER,
  -Number.MAX_SAFE_INTEGER,
  true,
  false,
  [],
  [null],
  ['b', 'a'],
  ['a', 'b'],
  ['a', 'a'],
  [[1]],
  {},
  { '10': 1, '9': 2, b: null },
  { a: { b: [true, { c: 'x' }] } },
  deep(20),
];
const kinds = schemaData(
  defineSchema({
    thing: entity({
      text: text({ optional: true }),
      integer: integer({ optional: true }),
      number: number({ optional: true }),
      flag: flag({ optional: true }),
      time: time({ optional: true }),
      json: json<Json>({ optional: true }),
      counter: counter(),
      set: setOf(text()),
      one: oneOf(['a', 'b'], { otherwise: 'b', optional: true }),
    }),
  }),
);
/** The same wire names as values of any form: what another app wrote. */
const loose = schemaData(
  defineSchema({
    thing: entity(
      Object.fromEntries(
        Object.keys(kinds.entities['thing']?.fields ?? {}).map((name) => [name, json<Json>({ optional: true })]),
      ),
    ),
  }),
);

test.each([
  ['\u0000'],
  ['a\u0000b'],
  ['\uD800'],
  [2 ** 53],
  [-(2 ** 63)],
  [1e21],
  [Number.MAX_VALUE],
  [Number.NaN],
  [Number.POSITIVE_INFINITY],
])('[CM3 I26] %j is refused before anything is written, in every kind of column', (value) => {
  const device = newDevice({ schema: loose });
  device.bootstrap(newLedger());
  for (const name of Object.keys(loose.entities['thing']?.fields ?? {})) {
    const request = device.request([{ do: 'create', entity: 'thing', id: 't1', fields: { [name]: [value] } }]);
    expect(device.state.commit(request)).toMatchObject({
      ok: false,
      fault: { code: 'invalid-change', facts: { issues: [{ path: ['thing', name], code: 'not-json' }] } },
    });
  }
  expect([device.rows('thing'), device.state.counts().unsent]).toEqual([[], 0]);
});

test('[SC5 I26] every JSON value in every kind of column is signed, kept and given back as it was, also after reopening', () => {
  const ledger = newLedger();
  const writer = newDevice({ schema: loose, account: 'ben', seed: 9 });
  const device = newDevice({ schema: kinds });
  for (const one of [writer, device]) one.bootstrap(ledger);
  VALUES.forEach((value, at) => {
    const fields = Object.fromEntries(Object.keys(kinds.entities['thing']?.fields ?? {}).map((name) => [name, value]));
    writer.create('thing', fields, `v${at}`);
  });
  writer.settle(ledger);
  device.pullAll(ledger);
  const check = (one: Device) => {
    expect(one.state.log('main')?.signature).toBe(ledger.signature);
    expect(sound(one)).toEqual([]);
    VALUES.forEach((value, at) => {
      const fields = fieldsOf(one, 'thing', `v${at}`) ?? {};
      expect(Object.keys(fields)).toHaveLength(9);
      for (const field of Object.values(fields)) expect(field).toEqual(value);
    });
  };
  check(device);
  device.reopen();
  check(device);
  // Counted and added to, where that has a meaning; the rest is left as it is.
  device.commit([{ do: 'update', entity: 'thing', id: `v${VALUES.indexOf(0.5) - 2}`, inc: { counter: 1 } }]);
  device.settle(ledger);
  device.reopen();
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);
  const fresh = newDevice({ schema: kinds, account: 'cyd', seed: 5 });
  fresh.bootstrap(ledger, 3);
  expect(fresh.state.log('main')?.signature).toBe(ledger.signature);
  fresh.reopen();
  expect(sound(fresh)).toEqual([]);
});
