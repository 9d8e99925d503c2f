import { createHash } from 'node:crypto';
import { counter, defineSchema, entity, number, rank, ref, serial, setOf, text, time } from '@holdfast/core';
import { createWorld } from '@holdfast/replica/testing';
import { sql } from 'kysely';
import { readEvents } from '../../simulation/src/account.fixture.ts';

/**
 * A world of which nothing may depend on where and when it runs. argv: what `Math.random` answers, and how far the clock of
 * this process is off, in ms. stdout: one JSON value, `{ surroundings, world }`.
 */
const [random, offMs] = process.argv.slice(2).map(Number) as [number, number];
const trueNow = Date.now;
Math.random = () => random;
Date.now = () => trueNow() + offMs;

const schema = defineSchema({
  tag: entity({ name: text() }, { key: ['name'] }),
  issue: entity(
    {
      number: serial(),
      title: text(),
      tag: ref('tag'),
      labels: setOf(text()),
      at: time({ optional: true, onClash: 'last' }),
      weight: number({ default: 0, onClash: 'max' }),
      name: text({ optional: true, onClash: 'min' }),
      votes: counter(),
      rank: rank(),
    },
    { index: [['title']], search: ['title'] },
  ),
});

/** What other locales sort, fold or write otherwise, and what other zones read as another instant. */
const WORDS = [
  'İstanbul',
  'istanbul',
  'ISTANBUL',
  'ıstanbul',
  'ä',
  'z',
  'å',
  'Straße',
  'STRASSE',
  'ch',
  'cz',
  'e\u0301',
];
const FLOATS = [0.1 + 0.2, 1 / 3, 1e-7, 5e-324, -0, 1_234_567.891, 0.1 * 3];
const INSTANTS = ['2026-03-29T02:30:00+01:00', '2026-10-25T02:30:00-03:30', '1969-12-31T23:59:59Z'];
const at = <T>(list: readonly T[], index: number): T => list[index % list.length] as T;

await using world = await createWorld({ schema, seed: 131 });
const [ana, ben] = [await world.device('ana'), await world.device('ben')];
await world.settle();
const ids: string[] = [];
for (const [index, title] of WORDS.entries())
  ids.push(
    await ana.replica.commit((tx) =>
      tx.issue.create({
        title,
        tag: tx.tag.put({ name: at(WORDS, index + 5) }),
        labels: [at(WORDS, index * 5), at(WORDS, index + 7), at(WORDS, index + 3)],
        at: at(INSTANTS, index),
        weight: at(FLOATS, index),
        rank: { at: index % 2 === 0 ? 'start' : 'end' },
      }),
    ),
  );
await world.settle();
// Both write the same fields unseen: the rules decide.
for (const device of [ana, ben]) device.offline();
for (const [index, id] of ids.entries())
  for (const [by, { replica }] of [ana, ben].entries())
    await replica.commit((tx) =>
      tx.issue.update(id as never, {
        weight: at(FLOATS, index + 1 + 3 * by),
        name: at(WORDS, index + 1 + 4 * by),
        at: new Date(index * 86_400_000 + by),
        labels: { add: [at(WORDS, index + 2 + by)], remove: [at(WORDS, index + 7)] },
        votes: { by: index + by },
      }),
    );
for (const device of [ana, ben]) device.online();
await world.settle();
await world.converged();

const events = await readEvents(world);
const report = await world.ledger.current.engine.verify({ workspace: 'world', log: 'main' });
const rows = await ben.replica.query((db) => db.selectFrom('issue').selectAll().orderBy('title').orderBy('id'));
const found = await ben.replica.query((db) =>
  db
    .selectFrom('issue')
    .select(['title', sql<string>`upper(title)`.as('upper')])
    .orderBy('rank')
    .orderBy('id'),
);
const hash = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');
const { locale, timeZone } = Intl.DateTimeFormat().resolvedOptions();
console.log(
  JSON.stringify({
    surroundings: {
      locale,
      timeZone,
      day: new Date(0).toString(),
      sorted: WORDS.toSorted((one, other) => one.localeCompare(other)),
      number: (1_234_567.891).toLocaleString(),
      random: Math.random(),
    },
    world: {
      chain: report?.chain,
      signature: report?.signature,
      problems: report?.problems,
      count: events.length,
      desk: (await ben.replica.desk.list()).length,
      events: hash(events),
      rows: hash(rows),
      titles: rows.map(({ title }) => title),
      found: hash(found),
    },
  }),
);
