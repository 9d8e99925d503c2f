import { expect, test } from 'vitest';
import { discard, fillUp, type Prepared, prepare } from './crash.ts';
import { scenarioNamed } from './scenarios.ts';

/** SQLite's own `SQLITE_FULL`: the file may grow by this many pages and no more, until there is room again. */
const PAGES = [0, 1, 2, 3, 5, 8, 13, 21, 34];

test.each(['commit', 'ingest', 'bootstrap'])(
  '[F20 CM1 I01 I02] %s on a disk without room: it says so, nothing is half done, and all is well once there is room',
  async (name) => {
    const prepared: Prepared = await prepare(scenarioNamed(name));
    let full = 0;
    for (const pages of PAGES) {
      const { wasFull, problems } = await fillUp(prepared, pages);
      expect([pages, problems]).toEqual([pages, []]);
      if (wasFull) full += 1;
    }
    expect(full).toBeGreaterThan(0);
    discard(prepared);
  },
);
