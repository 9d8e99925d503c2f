import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { loggedError } from './logged-error.ts';

const SECRET = 'my diagnosis';
const thrownBy = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (cause) {
    return cause;
  }
};

test('[S19] whatever is thrown, its words are not in the log', () => {
  const renamed = Object.assign(new Error(SECRET), { name: SECRET, code: SECRET, errstr: SECRET });
  const changed = new Error(`${SECRET}\n    at ${SECRET}:1:1`);
  changed.message = 'other';
  for (const thrown of [
    new Error(SECRET),
    // What looks like a frame is a part of the message.
    new TypeError(`no\n    at ${SECRET}:1:1\n${SECRET}`),
    thrownBy(() => JSON.parse(SECRET)),
    thrownBy(() => (undefined as unknown as Record<string, string>)[SECRET]),
    thrownBy(() => new DatabaseSync(':memory:').exec(`select '${SECRET}' from "${SECRET}"`)),
    new Error('outer', { cause: new AggregateError([new Error(SECRET)], SECRET) }),
    renamed,
    changed,
    SECRET,
    { message: SECRET },
  ])
    expect(JSON.stringify(loggedError(thrown))).not.toContain(SECRET);
});

test('[S19] what it was and where is there: name, code, frames, and the same of what caused it', () => {
  const refused = Object.assign(new Error('connect 10.0.0.1'), { code: 'ECONNREFUSED' });
  const told = loggedError(new TypeError('fetch failed', { cause: refused }));
  expect(told).toMatchObject({ name: 'TypeError', cause: { name: 'Error', code: 'ECONNREFUSED' } });
  expect(told.at?.[0]).toMatch(/^at .*logged-error\.test\.ts:\d+:\d+\)?$/);
  const sqlite = thrownBy(() => new DatabaseSync(':memory:').exec('select * from nothing'));
  expect(loggedError(sqlite)).toMatchObject({ code: 'ERR_SQLITE_ERROR', sqlite: 'SQL logic error' });
  expect(loggedError(7)).toEqual({ name: 'thrown number' });
});

test('[S19] a chain of causes without an end is cut', () => {
  const round = new Error('round');
  round.cause = round;
  expect(JSON.stringify(loggedError(round)).match(/"name"/g)).toHaveLength(4);
});
