import {
  defineSchema,
  type EntityData,
  entity,
  type JsonObject,
  type RecordedChange,
  RUN_TIME_TYPE,
  rank,
  ref,
  schemaData,
  text,
} from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    project: entity({ name: text() }),
    issue: entity(
      { title: text(), place: rank(), project: ref('project', { optional: true, onDelete: 'clear' }) },
      { search: ['title'] },
    ),
    note: entity({ body: text(), issue: ref('issue', { onDelete: 'delete-too' }) }),
    link: entity({ to: ref('issue') }),
    draft: entity({ body: text(), issue: ref('issue', { optional: true }) }, { local: true, search: ['body'] }),
  }),
);
const withoutSearch = schemaData(defineSchema({ issue: entity({ title: text() }) }));

const devices: Device[] = [];
const newDevice = (more: Partial<ConstructorParameters<typeof Device>[0]> = {}) => {
  const device = new Device({ schema, seed: devices.length + 1, ...more });
  devices.push(device);
  return device;
};
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});
function connected(more: Partial<ConstructorParameters<typeof Device>[0]> = {}): {
  device: Device;
  ledger: TinyLedger;
} {
  const ledger = new TinyLedger(nodeDigest);
  const device = newDevice(more);
  device.bootstrap(ledger);
  return { device, ledger };
}
const sound = (device: Device) => examine(device.state.store).findings.filter(({ check }) => check !== 'permits');
const frames = (device: Device): readonly JsonObject[] =>
  device.database
    .prepare('SELECT frame FROM main.hf_outbox ORDER BY seq')
    .all()
    .map(({ frame }) => JSON.parse(frame as string) as JsonObject);
const query = (device: Device, sql: string) =>
  device.database
    .prepareQuery(sql)
    .statement.all()
    .map((row) => ({ ...row }));

// ── run-time types, names ───────────────────────────────────────────────────────────────────────────────────────────

const team: EntityData = { fields: { name: { kind: 'text' }, size: { kind: 'integer', default: 1 } } };
/** What a tool with rights does: the reserved type is an entity like any other. */
const admin = schemaData(defineSchema({ team: entity({ name: text() }) }));
function withRunTimeType(ledger: TinyLedger, type: string, data: EntityData): void {
  ledger.push(
    [
      {
        requestId: `r-${type}`,
        actionId: `a-${type}`,
        merge: 'fields',
        events: [
          {
            id: `e-${type}`,
            type: `${RUN_TIME_TYPE}.created`,
            entityType: RUN_TIME_TYPE,
            entityId: type,
            base: 0,
            change: { op: 'create', fields: { schema: data as unknown as JsonObject } },
            at: '2026-01-01T00:00:00.000Z',
            salt: '0'.repeat(32),
          },
        ],
      } as never,
    ],
    { actor: 'root', replicaId: 'f'.repeat(32) },
  );
}

test('[SC4 SC6] a type that came at run time is a table to query and to write, with what came before it, also after reopening', () => {
  const { device, ledger } = connected();
  const root = newDevice({ schema: admin, account: 'root' });
  root.bootstrap(ledger);
  root.create('team', { name: 'Early' }, 't0');
  root.settle(ledger);
  device.pullAll(ledger);
  expect(() => query(device, 'SELECT * FROM team')).toThrow();
  withRunTimeType(ledger, 'team', team);
  device.pullAll(ledger);
  device.state.store.openViews();
  expect(query(device, 'SELECT id, name, size FROM team')).toEqual([{ id: 't0', name: 'Early', size: 1 }]);
  device.create('team', { name: 'Late', size: 4 }, 't1');
  device.reopen();
  expect(query(device, 'SELECT id, name, size, sync FROM team ORDER BY id')).toEqual([
    { id: 't0', name: 'Early', size: 1, sync: 'synced' },
    { id: 't1', name: 'Late', size: 4, sync: 'pending' },
  ]);
  device.settle(ledger);
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(sound(device)).toEqual([]);
});

/** A definition, as a tool with rights sends it again. */
function redefined(ledger: TinyLedger, type: string, data: EntityData, base: number): void {
  ledger.push(
    [
      {
        requestId: `r-${type}-${base}`,
        actionId: `a-${type}-${base}`,
        merge: 'fields',
        events: [
          {
            id: `e-${type}-${base}`,
            type: `${RUN_TIME_TYPE}.updated`,
            entityType: RUN_TIME_TYPE,
            entityId: type,
            base,
            change: { op: 'update', set: { schema: data as unknown as JsonObject } },
            at: '2026-01-01T00:00:00.000Z',
            salt: '0'.repeat(32),
          },
        ],
      } as never,
    ],
    { actor: 'root', replicaId: 'f'.repeat(32) },
  );
}

test('[SC4 SC1] a run-time type that is defined again gets the new fields, and keeps the values of those left out', () => {
  const { device, ledger } = connected();
  withRunTimeType(ledger, 'team', team);
  device.pullAll(ledger);
  device.create('team', { name: 'A', size: 4 }, 't1');
  device.settle(ledger);
  // `size` is left out, `motto` is new.
  redefined(ledger, 'team', { fields: { name: { kind: 'text' }, motto: { kind: 'text', optional: true } } }, 1);
  device.pullAll(ledger);
  device.state.store.openViews();
  expect(query(device, 'SELECT name, motto FROM team')).toEqual([{ name: 'A', motto: null }]);
  expect(() => query(device, 'SELECT size FROM team')).toThrow();
  device.update('team', 't1', { motto: 'M' });
  device.settle(ledger);
  expect([device.state.log('main')?.signature, sound(device)]).toEqual([ledger.signature, []]);
  device.reopen();
  device.update('team', 't1', { name: 'B' });
  device.settle(ledger);
  expect([device.state.log('main')?.signature, sound(device)]).toEqual([ledger.signature, []]);
  expect(ledger.entities.find(({ id }) => id === 't1')?.fields).toEqual({ motto: 'M', name: 'B', size: 4 });
});

test('[SC4 F08] a declaration in a transaction that is rolled back is undone with it', () => {
  const { device, ledger } = connected();
  const { store } = device.state;
  device.create('issue', { title: 'A' }, 'i1');
  device.settle(ledger);
  const isDeclared = () => store.tables.has('team');
  expect(() =>
    store.write(() => {
      expect([store.declareType('team', team), store.declareType('Issue', team)]).toEqual([true, false]);
      expect(isDeclared()).toBe(true);
      throw new Error('the disk is full');
    }),
  ).toThrow('the disk is full');
  expect([isDeclared(), store.typeFaults()]).toEqual([false, []]);
  withRunTimeType(ledger, 'team', team);
  device.pullAll(ledger);
  expect(isDeclared()).toBe(true);
  device.create('team', { name: 'B' }, 't1');
  device.settle(ledger);
  expect([device.state.log('main')?.signature, sound(device)]).toEqual([ledger.signature, []]);
});

test('[SC7] a run-time type whose name is taken is told, also after reopening, until the name is free', () => {
  const { device, ledger } = connected();
  const told = () => device.state.typeFaults();
  withRunTimeType(ledger, 'project', team);
  withRunTimeType(ledger, 'noTe', team);
  withRunTimeType(ledger, 'team', team);
  device.pullAll(ledger);
  const both = ['noTe', 'project'].map((type) => ({ code: 'type-name-taken', facts: { type } }));
  expect(told()).toEqual(both);
  device.reopen();
  expect(told()).toEqual(both);
  // `project` is free; a table of the name `note` stays in the file, for the app version that may come back.
  device.reopen(withoutSearch);
  expect(told()).toEqual([{ code: 'type-name-taken', facts: { type: 'noTe' } }]);
  expect(query(device, 'SELECT name, size FROM project')).toEqual([]);
  expect(sound(device)).toEqual([]);
});

test.each([
  ['is one of the schema', 'issue', team],
  ['differs from one of the schema in case', 'Issue', team],
  ['is no name', 'hf_log', team],
  ['is reserved', 'sync', team],
  ['has a field of no kind', 'team', { fields: { name: { kind: 'blob' } } } as unknown as EntityData],
])(
  '[SC7 SC4] a run-time type that %s is kept as the value that it is, and nothing else happens',
  (_why, type, data) => {
    const { device, ledger } = connected();
    device.create('issue', { title: 'A' }, 'i1');
    device.settle(ledger);
    withRunTimeType(ledger, type, data);
    device.pullAll(ledger);
    device.reopen();
    expect(query(device, 'SELECT title FROM issue')).toEqual([{ title: 'A' }]);
    expect(device.state.log('main')?.signature).toBe(ledger.signature);
    expect(sound(device)).toEqual([]);
  },
);

test('[SC7] an app may call its entities event, outbox, log, base or entity; engine tables stay out of sight', () => {
  const names = ['event', 'outbox', 'log', 'base', 'entity', 'deleted', 'setting', 'order', 'group', 'select'];
  const odd = schemaData(
    defineSchema(Object.fromEntries(names.map((name) => [name, entity({ index: text(), table: text() })]))),
  );
  const { device, ledger } = connected({ schema: odd });
  for (const name of names) device.create(name, { index: name, table: 'x' }, 'one');
  device.settle(ledger);
  device.reopen();
  for (const name of names) {
    expect(query(device, `SELECT id, "index" FROM "${name}"`)).toEqual([{ id: 'one', index: name }]);
    device.delete(name, 'one');
  }
  device.settle(ledger);
  expect(ledger.entities).toEqual([]);
  expect(sound(device)).toEqual([]);
  for (const { name } of device.database
    .prepare("SELECT name FROM main.sqlite_master WHERE name LIKE 'hf\\_%' ESCAPE '\\' AND type = 'table'")
    .all())
    expect(() => query(device, `SELECT * FROM "${name}"`)).toThrow(expect.objectContaining({ code: 'query-refused' }));
});

// ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────

test('[SC8] pending rows arrive after all others in local order, and the version of their create when confirmed', () => {
  const { device, ledger } = connected();
  const ben = newDevice({ account: 'ben' });
  ben.bootstrap(ledger);
  device.create('project', { name: 'mine 1' }, 'b');
  device.create('project', { name: 'mine 2' }, 'a');
  ben.create('project', { name: 'theirs' }, 'z');
  ben.settle(ledger);
  device.pullAll(ledger);
  const list = () => query(device, 'SELECT id, sync, createdBy, arrival FROM project ORDER BY arrival');
  expect(list().map(({ id, sync, createdBy }) => [id, sync, createdBy])).toEqual([
    ['z', 'synced', 'ben'],
    ['b', 'pending', 'ana'],
    ['a', 'pending', 'ana'],
  ]);
  expect(list().map(({ arrival }) => Number(arrival) >= 2 ** 52)).toEqual([false, true, true]);
  device.settle(ledger);
  expect(list().map(({ id, sync, arrival }) => [id, sync, arrival])).toEqual([
    ['z', 'synced', 1],
    ['b', 'synced', 2],
    ['a', 'synced', 3],
  ]);
  device.update('project', 'b', { name: 'again' });
  expect(list().map(({ id, sync, arrival }) => [id, sync, arrival])[1]).toEqual(['b', 'pending', 2]);
  expect(device.row('project', 'b')).toMatchObject({ updatedBy: 'ana', createdAt: ledger.events[1]?.recordedAt });
});

// ── refs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

test('[SC9] a ref to what is not sent yet names that batch; one that must exist is required', () => {
  const { device, ledger } = connected();
  const first = device.commit([{ do: 'create', entity: 'issue', id: 'i1', fields: { title: 'A' } }]);
  device.commit([{ do: 'create', entity: 'note', id: 'n1', fields: { body: 'N', issue: 'i1' } }]);
  expect(frames(device)[1]).toMatchObject({ needs: [first], requires: [['issue', 'i1']] });
  device.settle(ledger);
  device.commit([{ do: 'create', entity: 'note', id: 'n2', fields: { body: 'N', issue: 'i1' } }]);
  device.commit([{ do: 'update', entity: 'issue', id: 'i1', set: { project: 'nowhere' } }]);
  const [required, optional] = frames(device);
  expect(required).toMatchObject({ requires: [['issue', 'i1']] });
  expect(required).not.toHaveProperty('needs');
  expect(optional).not.toHaveProperty('requires');
});

test('[SC9] a deletion clears, deletes too or keeps, as each ref says, in one batch', () => {
  const { device, ledger } = connected();
  device.create('project', { name: 'P' }, 'p1');
  device.create('issue', { title: 'A', project: 'p1' }, 'i1');
  device.create('note', { body: 'N', issue: 'i1' }, 'n1');
  device.create('link', { to: 'i1' }, 'l1');
  device.settle(ledger);
  device.delete('project', 'p1');
  expect(device.row('issue', 'i1')?.['project']).toBeNull();
  device.delete('issue', 'i1');
  expect([device.row('note', 'n1'), device.row('link', 'l1')?.['to']]).toEqual([undefined, 'i1']);
  expect(device.state.counts().unsent).toBe(2);
  device.settle(ledger);
  expect(ledger.entities.map(({ type, id }) => `${type}/${id}`)).toEqual(['link/l1']);
  expect(sound(device)).toEqual([]);
});

test.each<readonly [string, readonly RecordedChange[]]>([
  [
    'both are deleted, the referring one first',
    [
      { do: 'delete', entity: 'note', id: 'n1' },
      { do: 'delete', entity: 'issue', id: 'i1' },
    ],
  ],
  [
    'the ref points elsewhere by then',
    [
      { do: 'update', entity: 'note', id: 'n1', set: { issue: 'i2' } },
      { do: 'delete', entity: 'issue', id: 'i1' },
      { do: 'delete', entity: 'note', id: 'n1' },
    ],
  ],
  [
    'it was created in the same commit',
    [
      { do: 'create', entity: 'note', id: 'n9', fields: { body: 'N', issue: 'i1' } },
      { do: 'delete', entity: 'issue', id: 'i1' },
    ],
  ],
])('[SC9] within one commit, %s: what is deleted too is what refers to it then', (_name, changes) => {
  const { device, ledger } = connected();
  device.create('issue', { title: 'A' }, 'i1');
  device.create('issue', { title: 'B' }, 'i2');
  device.create('note', { body: 'N', issue: 'i1' }, 'n1');
  device.settle(ledger);
  device.commit(changes);
  expect([device.rows('note'), device.rows('issue').map(({ id }) => id)]).toEqual([[], ['i2']]);
  device.settle(ledger);
  expect(ledger.entities.map(({ id }) => id)).toEqual(['i2']);
  expect(sound(device)).toEqual([]);
});

test('[SC9] entities that refer to each other are deleted together', () => {
  const pair = schemaData(
    defineSchema({
      left: entity({ other: ref('right', { optional: true, onDelete: 'delete-too' }) }),
      right: entity({ other: ref('left', { optional: true, onDelete: 'delete-too' }) }),
    }),
  );
  const { device, ledger } = connected({ schema: pair });
  device.commit([
    { do: 'create', entity: 'left', id: 'l', fields: { other: 'r' } },
    { do: 'create', entity: 'right', id: 'r', fields: { other: 'l' } },
  ]);
  device.settle(ledger);
  device.delete('left', 'l');
  device.settle(ledger);
  expect([ledger.entities, sound(device)]).toEqual([[], []]);
});

// ── local entities, search, places ──────────────────────────────────────────────────────────────────────────────────

test('[SC10] a local entity is durable at once, never sent and never signed', () => {
  const { device, ledger } = connected();
  const actionId = device.commit([{ do: 'create', entity: 'draft', id: 'd1', fields: { body: 'secret' } }]);
  expect([device.state.outcome(actionId), device.state.counts().unsent]).toEqual([{ state: 'local' }, 0]);
  device.commit([
    { do: 'update', entity: 'draft', id: 'd1', set: { body: 'still secret' } },
    { do: 'create', entity: 'issue', id: 'i1', fields: { title: 'A' } },
  ]);
  device.reopen();
  device.settle(ledger);
  expect(JSON.stringify(ledger.events)).not.toContain('secret');
  expect(device.state.log('main')?.signature).toBe(ledger.signature);
  expect(query(device, 'SELECT body, sync FROM draft')).toEqual([{ body: 'still secret', sync: 'synced' }]);
  expect(sound(device)).toEqual([]);
});

test('[SC10] search follows commits, pages, deletions, rebases and a version of the app that has no search', () => {
  const { device, ledger } = connected();
  const found = (word: string) =>
    device.database
      .prepare(
        `SELECT _id FROM main.issue WHERE _row IN (SELECT rowid FROM main.hf_search_issue WHERE hf_search_issue MATCH ?) ORDER BY _id`,
      )
      .all(word)
      .map(({ _id }) => _id);
  const isWhole = () =>
    device.database.exec("INSERT INTO main.hf_search_issue (hf_search_issue, rank) VALUES ('integrity-check', 1)");
  device.create('issue', { title: 'red apple' }, 'i1');
  device.create('issue', { title: 'green pear' }, 'i2');
  expect([found('apple'), found('green')]).toEqual([['i1'], ['i2']]);
  device.settle(ledger);
  device.update('issue', 'i1', { title: 'red plum' });
  expect([found('apple'), found('plum')]).toEqual([[], ['i1']]);
  device.settle(ledger);
  isWhole();
  device.reopen(withoutSearch);
  device.update('issue', 'i1', { title: 'blue plum' });
  device.create('issue', { title: 'blue berry' }, 'i3');
  device.delete('issue', 'i2');
  device.reopen(schema);
  expect([found('red'), found('blue'), found('pear')]).toEqual([[], ['i1', 'i3'], []]);
  isWhole();
  device.settle(ledger);
  device.delete('issue', 'i3');
  expect(found('blue')).toEqual(['i1']);
  isWhole();
});

test('[SC10] a place is made inside the commit, between the neighbours as they are now', () => {
  const { device, ledger } = connected();
  const at = (id: string, place: JsonObject, isNew = true) =>
    device.commit([
      isNew
        ? ({ do: 'create', entity: 'issue', id, fields: { title: id }, place: { place } } as never)
        : ({ do: 'update', entity: 'issue', id, place: { place } } as never),
    ]);
  const order = () => query(device, 'SELECT id FROM issue ORDER BY place, id').map(({ id }) => id);
  at('a', { at: 'end' });
  at('c', { at: 'end' });
  at('b', { after: { id: 'a' }, before: { id: 'c' } });
  at('z', { at: 'start' });
  expect(order()).toEqual(['z', 'a', 'b', 'c']);
  device.settle(ledger);
  at('z', { at: 'end' }, false);
  at('a', { after: { id: 'b' }, before: { id: 'c' } }, false);
  expect(order()).toEqual(['b', 'a', 'c', 'z']);
  device.settle(ledger);
  expect([device.state.log('main')?.signature, sound(device)]).toEqual([ledger.signature, []]);
});
