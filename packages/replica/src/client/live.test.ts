import { expect, test } from 'vitest';
import { nodeClock } from '../adapters/node/platform.ts';
import { Link } from '../link/link.ts';
import type { Ask, ChannelEvents } from '../link/messages.ts';
import { createLiveRegistry } from './live.ts';

/** A host of which a test says every word. */
function scripted() {
  const asked: Ask[] = [];
  let events: ChannelEvents | null = null;
  const link = new Link({
    clock: nodeClock,
    open: (given) => {
      events = given;
      return { send: (ask) => void asked.push(ask), close: () => undefined };
    },
  });
  link.start();
  const key = () => asked.findLast((ask) => ask.ask === 'live')?.key ?? '';
  const tell = (rows: readonly [number, readonly string[]][], length: number, more: object = {}) =>
    events?.tell({
      tell: 'rows',
      key: key(),
      upToSeq: 1,
      isPartial: false,
      patch: { length, set: rows },
      ...more,
    });
  const failing = () => events?.tell({ tell: 'failing', key: key(), fault: { code: 'query-failed' } });
  return { asked, registry: createLiveRegistry(link, nodeClock), tell, failing };
}
const columns = { columns: [{ name: 'id' }] };
const query = { sql: 'SELECT id FROM issue', parameters: [] };

test('[LQ3] a result that only became complete is the same array', () => {
  const { registry, tell } = scripted();
  const live = registry.open<{ id: string }>(query);
  expect(live.current).toEqual({ rows: [], state: 'loading' });
  tell([[0, ['a']]], 1, { ...columns, isPartial: true });
  const { rows } = live.current;
  expect(live.current.state).toBe('partial');
  tell([], 1);
  expect(live.current.state).toBe('complete');
  expect(live.current.rows).toBe(rows);
});

test('[LQ6] a failing query keeps its last rows, and loses its error with the next result', () => {
  const { registry, tell, failing } = scripted();
  const live = registry.open<{ id: string }>(query);
  tell([[0, ['a']]], 1, columns);
  const { rows } = live.current;
  failing();
  expect(live.current).toMatchObject({ rows: [{ id: 'a' }], error: { code: 'query-failed' } });
  tell([], 1);
  expect(live.current.error).toBeUndefined();
  expect(live.current.rows).toBe(rows);
});

test('[LQ3] a result that is equal to the one told before is not told again, however the host says it', () => {
  const { registry, tell, failing } = scripted();
  const live = registry.open<{ id: string }>(query);
  const told: (readonly [readonly { id: string }[], string, string?])[] = [];
  live.subscribe(({ rows, state, error }) => void told.push(error ? [rows, state, error.code] : [rows, state]));
  const both: [number, string[]][] = [
    [0, ['a']],
    [1, ['b']],
  ];
  tell(both, 2, columns);
  const { rows } = live.current;
  // The next host, or this one after a change of its tables.
  tell(both, 2, columns);
  tell([], 2);
  tell([[1, ['b']]], 2);
  expect(live.current.rows).toBe(rows);
  failing();
  failing();
  tell(both, 2, columns);
  tell([both[0] as [number, string[]], [1, ['c']]], 2, columns);
  expect(live.current.rows[0]).toBe(rows[0]);
  tell([[0, ['a']]], 1, columns);
  expect(told).toEqual([
    [[], 'loading'],
    [[{ id: 'a' }, { id: 'b' }], 'complete'],
    [[{ id: 'a' }, { id: 'b' }], 'complete', 'query-failed'],
    [[{ id: 'a' }, { id: 'b' }], 'complete'],
    [[{ id: 'a' }, { id: 'c' }], 'complete'],
    [[{ id: 'a' }], 'complete'],
  ]);
});

test('[LQ1] the host is asked once for equal queries, and told when the last one leaves', () => {
  const { registry, asked } = scripted();
  const [one, two] = [registry.open(query), registry.open(query)];
  expect(asked.filter(({ ask }) => ask === 'live')).toHaveLength(1);
  one[Symbol.dispose]();
  one[Symbol.dispose]();
  expect(asked.filter(({ ask }) => ask === 'drop')).toHaveLength(0);
  two[Symbol.dispose]();
  expect(asked.filter(({ ask }) => ask === 'drop')).toHaveLength(1);
  expect(registry.count).toBe(0);
});
