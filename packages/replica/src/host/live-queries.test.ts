import { LIMITS, type RecordedChange } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodePlatform } from '../adapters/node/platform.ts';
import { callerIds } from '../client/caller-ids.ts';
import type { Channel, Tell } from '../link/messages.ts';
import { openTestHost, type TestHost } from './host.fixture.ts';

/** A clock whose `soon` a test runs: what gathers until then is seen. */
function turns() {
  const waiting: (() => void)[] = [];
  const clock = { ...nodePlatform.clock, soon: (run: () => void) => void waiting.push(run) };
  const turn = () => {
    for (const run of waiting.splice(0)) run();
  };
  return { platform: { ...nodePlatform, clock }, turn };
}

let made: TestHost;
let turn: () => void;
let told: Tell[];
let channel: Channel;
const { newId } = callerIds(nodePlatform);

beforeEach(() => {
  const stepped = turns();
  turn = stepped.turn;
  made = openTestHost({ platform: stepped.platform });
  told = [];
  channel = connect(told);
  turn();
  told.splice(0);
});
afterEach(() => made.host.close());

const connect = (into: Tell[]): Channel =>
  made.host.openChannel({ tell: (tell) => into.push(tell), closed: () => undefined });
const write = (...changes: RecordedChange[]) =>
  made.host.state.commit({ actionId: newId(), log: 'main', changes, seen: [], reads: [] });
const create = (id: string, title: string): RecordedChange => ({
  do: 'create',
  entity: 'issue',
  id,
  fields: { title, body: '', done: false, labels: [], votes: 0 },
});
const set = (id: string, fields: Record<string, string>): RecordedChange => ({
  do: 'update',
  entity: 'issue',
  id,
  set: fields,
});
const live = (key: string, sql: string, parameters: (string | number)[] = []) =>
  channel.send({ ask: 'live', key, sql, parameters });
const rowsTold = (key: string, from: Tell[] = told) =>
  from.filter((tell) => tell.tell === 'rows' && tell.key === key) as Extract<Tell, { tell: 'rows' }>[];

test('[LQ6] a transaction that touched no column of the query does not run it', () => {
  write(create('a', 'A'));
  live('titles', 'SELECT id, title FROM issue');
  turn();
  const before = made.runs();
  write(set('a', { body: 'other' }));
  write({ do: 'create', entity: 'comment', id: 'c', fields: { issue: 'a', body: 'x' } });
  turn();
  expect(made.runs()).toBe(before);
  write(set('a', { title: 'AA' }));
  turn();
  expect(made.runs()).toBe(before + 1);
});

test('[LQ6] a column that only a condition, an order or a search reads counts', () => {
  write(create('a', 'A'));
  live('body', "SELECT id FROM issue WHERE body = 'x'");
  live('order', 'SELECT id FROM issue ORDER BY votes');
  live(
    'search',
    'SELECT id FROM issue WHERE (id, log) IN (SELECT _id, _log FROM main.issue WHERE _row IN (SELECT rowid FROM hf_search_issue WHERE hf_search_issue MATCH ?))',
    ['new'],
  );
  write(set('a', { body: 'x' }));
  turn();
  expect(rowsTold('body').at(-1)?.patch.length).toBe(1);
  const before = made.runs();
  write({ do: 'update', entity: 'issue', id: 'a', inc: { votes: 1 } });
  turn();
  expect(made.runs()).toBe(before + 1);
  write(set('a', { title: 'new' }));
  turn();
  expect(rowsTold('search').at(-1)?.patch.set).toEqual([[0, ['a']]]);
});

test.each([
  'SELECT count(*) FROM issue',
  'SELECT EXISTS (SELECT 1 FROM issue)',
  'SELECT count(*) FROM comment LEFT JOIN (SELECT 1 FROM issue) ON 1',
  'SELECT count(*) FROM issue FULL JOIN comment',
  'SELECT 1 FROM issue UNION ALL SELECT 2',
  'WITH RECURSIVE n(x) AS (SELECT 1 FROM issue UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT count(*) FROM n',
])('[LQ6] rows whose columns nobody asks for count: %s', (sql) => {
  write({ do: 'create', entity: 'comment', id: 'c', fields: { issue: 'b', body: 'x' } });
  live('rows', sql);
  turn();
  const seen = rowsTold('rows').length;
  expect(seen).toBeGreaterThan(0);
  for (const id of ['a', 'b']) write(create(id, id));
  turn();
  expect(rowsTold('rows').length).toBeGreaterThan(seen);
});

test('[LQ6] what gathers until the processor is free makes one run', () => {
  live('all', 'SELECT id FROM issue');
  const before = made.runs();
  for (let at = 0; at < 20; at += 1) write(create(`i${at}`, 'x'));
  turn();
  expect(made.runs()).toBe(before + 1);
  expect(rowsTold('all').at(-1)?.patch.length).toBe(20);
});

test('[LQ6] while nobody looks nothing is run; then one run tells all', () => {
  live('all', 'SELECT id FROM issue');
  const other = connect([]);
  other.send({ ask: 'live', key: 'theirs', sql: 'SELECT count(*) AS n FROM issue', parameters: [] });
  channel.send({ ask: 'visible', isVisible: false });
  const seen = rowsTold('all').length;
  write(create('a', 'A'));
  turn();
  other.close();
  write(create('b', 'B'));
  turn();
  expect(rowsTold('all')).toHaveLength(seen);
  const before = made.runs();
  channel.send({ ask: 'visible', isVisible: true });
  turn();
  expect(made.runs()).toBe(before + 1);
  expect(rowsTold('all').at(-1)?.patch.set).toHaveLength(2);
});

test('[LQ6] a run that fails is told by that query, and told again when it works', () => {
  live('sum', 'SELECT json(title) AS j FROM issue');
  write(create('a', '{'));
  turn();
  expect(told.filter((tell) => tell.tell === 'failing')).toMatchObject([
    { key: 'sum', fault: { code: 'query-failed' } },
  ]);
  write(set('a', { title: '{}' }));
  turn();
  expect(rowsTold('sum').at(-1)?.patch.set).toEqual([[0, ['{}']]]);
});

test('[LQ1] whoever asks for what runs already gets its rows at once, without a run', () => {
  write(create('a', 'A'));
  live('first', 'SELECT id FROM issue WHERE title = ?', ['A']);
  const before = made.runs();
  const other: Tell[] = [];
  connect(other).send({ ask: 'live', key: 'theirs', sql: 'SELECT id FROM issue WHERE title = ?', parameters: ['A'] });
  live('again', 'SELECT id FROM issue WHERE title = ?', ['A']);
  live('else', 'SELECT id FROM issue WHERE title = ?', ['B']);
  expect(made.runs()).toBe(before + 1);
  expect(rowsTold('theirs', other)[0]).toMatchObject({ patch: { set: [[0, ['a']]] } });
  expect(rowsTold('again')[0]?.columns).toHaveLength(1);
  expect(rowsTold('else')[0]?.patch.length).toBe(0);
});

test('[LK3 LQ6 F59] a page that hears nothing is told a bounded number of times, and what is so once it hears', () => {
  const other: Tell[] = [];
  const quick = connect(other);
  const sql = 'SELECT id FROM issue ORDER BY id';
  live('all', sql);
  live('own', 'SELECT id, title FROM issue ORDER BY id');
  quick.send({ ask: 'live', key: 'all', sql, parameters: [] });
  let heard = 0;
  for (let at = 100; at < 400; at += 1) {
    write(create(`i${at}`, 'x'));
    turn();
    quick.send({ ask: 'heard', tells: other.length - heard });
    heard = other.length;
  }
  expect(rowsTold('all', other).at(-1)?.patch.length).toBe(300);
  expect(rowsTold('all', other).length).toBeGreaterThan(300);
  // What it asks for is told to it all the same, but that its queries show its commits only when they do.
  channel.send({
    ask: 'commit',
    id: newId(),
    log: 'main',
    label: 'more',
    changes: [create('i400', 'x')],
    seen: [],
    reads: [],
  });
  channel.send({ ask: 'shown', id: 's', seq: 0 });
  turn();
  const isShown = () => told.some((tell) => tell.tell === 'answer' && tell.id === 's');
  expect(isShown()).toBe(false);
  expect(told.length).toBeLessThan(LIMITS.linkUnheardMax + 3);
  const [last, lastOwn] = [rowsTold('all').at(-1), rowsTold('own').at(-1)];
  const before = told.length;
  channel.send({ ask: 'heard', tells: LIMITS.linkUnheardMax });
  turn();
  expect(rowsTold('all').slice(rowsTold('all').indexOf(last as never) + 1)).toMatchObject([
    { patch: { length: 301, set: expect.objectContaining({ length: 301 - (last?.patch.length ?? 0) }) } },
  ]);
  expect(rowsTold('own').slice(rowsTold('own').indexOf(lastOwn as never) + 1)).toHaveLength(1);
  expect(isShown()).toBe(true);
  const news = told.slice(before).filter(({ tell }) => tell !== 'rows' && tell !== 'answer');
  expect(news).toMatchObject([
    { tell: 'status', status: { unsent: 301 } },
    { tell: 'undo', undo: { can: true, label: 'more' } },
  ]);
});

test('[LK3 LQ6] who looked away and back is told what others were told meanwhile, in one patch to the rows that it has', () => {
  const other = connect([]);
  const sql = 'SELECT id FROM issue ORDER BY id';
  for (const of of [channel, other]) of.send({ ask: 'live', key: 'all', sql, parameters: [] });
  write(create('a', 'A'));
  turn();
  channel.send({ ask: 'visible', isVisible: false });
  const seen = rowsTold('all').length;
  for (const id of ['b', 'c']) {
    write(create(id, 'x'));
    turn();
  }
  expect(rowsTold('all')).toHaveLength(seen);
  const before = made.runs();
  channel.send({ ask: 'visible', isVisible: true });
  turn();
  expect(made.runs()).toBe(before);
  const [, ...since] = rowsTold('all').slice(seen - 1);
  expect(since).toMatchObject([
    {
      patch: {
        length: 3,
        set: [
          [1, ['b']],
          [2, ['c']],
        ],
      },
    },
  ]);
  expect(since[0]).not.toHaveProperty('columns');
});

test('[LQ6 LQ1] who comes while a query fails gets its last rows, and the next ones when it works again', () => {
  const sql = 'SELECT json(title) AS j FROM issue ORDER BY id';
  write(create('a', '1'));
  live('first', sql);
  write(create('b', '{'));
  turn();
  const other: Tell[] = [];
  connect(other).send({ ask: 'live', key: 'theirs', sql, parameters: [] });
  expect(rowsTold('theirs', other)).toMatchObject([{ columns: [{ name: 'j' }], patch: { set: [[0, ['1']]] } }]);
  expect(other.at(-1)).toMatchObject({ tell: 'failing', key: 'theirs' });
  write(set('b', { title: '2' }));
  turn();
  expect(rowsTold('theirs', other).at(-1)?.patch).toEqual({ length: 2, set: [[1, ['2']]] });
});

test('[LQ2] a result names the local sequence that it includes, and never an earlier one', () => {
  live('all', 'SELECT id FROM issue');
  for (let at = 0; at < 5; at += 1) {
    const outcome = write(create(`i${at}`, 'x'));
    turn();
    const last = rowsTold('all').at(-1);
    expect(outcome.ok && (last?.upToSeq ?? 0) >= outcome.value.seq).toBe(true);
  }
  const sequences = rowsTold('all').map(({ upToSeq }) => upToSeq);
  expect(sequences.every((seq, at) => at === 0 || seq > (sequences[at - 1] as number))).toBe(true);
});

test('[LQ2] an own commit is shown once every query shows it, also if none was touched', () => {
  live('all', 'SELECT id FROM issue');
  channel.send({ ask: 'shown', id: 's0', seq: 0 });
  expect(told.at(-1)).toEqual({ tell: 'answer', id: 's0', value: null });
  write(create('a', 'A'));
  channel.send({ ask: 'shown', id: 's1', seq: 0 });
  expect(told.at(-1)).not.toMatchObject({ tell: 'answer', id: 's1' });
  turn();
  const at = told.findIndex((tell) => tell.tell === 'answer' && tell.id === 's1');
  expect(told.slice(0, at).some((tell) => tell.tell === 'rows' && tell.patch.length === 1)).toBe(true);
});

test('[LQ3] a run that finds nothing new tells nothing', () => {
  write(create('a', 'A'));
  live('all', 'SELECT id, done FROM issue');
  const before = rowsTold('all').length;
  write({ do: 'update', entity: 'issue', id: 'a', set: { done: false, title: 'B' } });
  write(create('b', 'B'), { do: 'delete', entity: 'issue', id: 'b' });
  turn();
  expect(rowsTold('all')).toHaveLength(before);
});

test('[LQ6] rows are partial until every followed log has its state', () => {
  live('all', 'SELECT id FROM issue');
  expect(rowsTold('all')[0]?.isPartial).toBe(true);
  made.host.state.write(() => {
    made.host.state.store.database.exec("UPDATE main.hf_log SET stage = 'visible'");
    made.host.state.store.tracker.logs = true;
  });
  turn();
  expect(rowsTold('all').at(-1)).toMatchObject({ isPartial: false, patch: { length: 0, set: [] } });
});

test('[LQ1] one caller over the bound is told so by that query alone', () => {
  const bound = 1_000;
  for (let at = 0; at < bound; at += 1) live(`k${at}`, 'SELECT id FROM issue LIMIT ?', [at]);
  live('one more', 'SELECT id FROM issue LIMIT 5000');
  expect(told.at(-1)).toMatchObject({ tell: 'failing', key: 'one more', fault: { code: 'query-failed' } });
  channel.send({ ask: 'drop', key: 'k0' });
  live('one more', 'SELECT id FROM issue LIMIT 5000');
  expect(rowsTold('one more')).toHaveLength(1);
});

test('[TM1] each commit, query and run is timed and counted, without payloads', () => {
  write(create('a', 'secret'));
  live('all', 'SELECT id, title FROM issue');
  channel.send({ ask: 'query', id: 'q', sql: 'SELECT title FROM issue', parameters: [] });
  channel.send({ ask: 'commit', id: newId(), log: 'main', changes: [create('b', 'secret')], seen: [], reads: [] });
  const names = made.signals.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['live', 'query', 'commit']));
  expect(made.signals.every(({ ms }) => ms >= 0)).toBe(true);
  expect(JSON.stringify(made.signals)).not.toContain('secret');
});
