import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { openFile } from './file.ts';
import { indexOutbox, readTally } from './outbox-index.ts';

const STATES = ['queued', 'sending', 'waiting', 'accepted', 'parked', 'refused', 'lost'];

/** What the outbox does to its rows: by number of the row it takes, from those that are there. */
const step = fc.oneof(
  fc.record({ do: fc.constant('insert' as const), log: fc.constantFrom('main', 'notes') }),
  fc.record({ do: fc.constant('state' as const), row: fc.nat(), state: fc.constantFrom(...STATES) }),
  fc.record({ do: fc.constant('hold' as const), row: fc.nat(), by: fc.constantFrom('somebody', null) }),
  fc.record({ do: fc.constant('toEnd' as const), row: fc.nat() }),
  fc.record({ do: fc.constant('delete' as const), row: fc.nat() }),
  fc.constant({ do: 'undone' as const }),
);

test('[OB7] [F08] what a connection keeps of the outbox is what the outbox says, after every change and every rollback', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const database = openNodeDatabase({ file: ':memory:' });
      openFile(database, nodePlatform, { ledger: 'l', account: 'a', workspace: 'w' });
      indexOutbox(database);
      let made = 0;
      const rows = () => database.prepare('SELECT seq FROM main.hf_outbox ORDER BY seq').all();
      const change = (one: Exclude<(typeof steps)[number], { do: 'undone' }>) => {
        if (one.do === 'insert') {
          made += 1;
          database
            .prepare(
              "INSERT INTO main.hf_outbox (log, action_id, request_id, state, drafts, events, bytes, frame, identity, created_at) VALUES (?, ?, ?, 'queued', '[]', 0, 0, '{}', '', 0)",
            )
            .run(one.log, `a${made}`, `a${made}`);
          return;
        }
        const all = rows();
        if (all.length === 0) return;
        const seq = all[one.row % all.length]?.['seq'] as number;
        if (one.do === 'state')
          database.prepare('UPDATE main.hf_outbox SET state = ? WHERE seq = ?').run(one.state, seq);
        else if (one.do === 'hold')
          database.prepare('UPDATE main.hf_outbox SET held_by = ? WHERE seq = ?').run(one.by, seq);
        else if (one.do === 'toEnd')
          database
            .prepare('UPDATE main.hf_outbox SET seq = (SELECT max(seq) + 1 FROM main.hf_outbox) WHERE seq = ?')
            .run(seq);
        else database.prepare('DELETE FROM main.hf_outbox WHERE seq = ?').run(seq);
      };
      for (const one of steps) {
        if (one.do === 'undone') {
          database.exec('BEGIN');
          change({ do: 'insert', log: 'main' });
          change({ do: 'state', row: 0, state: 'sending' });
          change({ do: 'delete', row: 1 });
          database.exec('ROLLBACK');
        } else change(one);
        expect(database.prepare('SELECT action_id, seq FROM temp.hf_action ORDER BY seq').all()).toEqual(
          database.prepare('SELECT action_id, seq FROM main.hf_outbox ORDER BY seq').all(),
        );
        const counted = database
          .prepare(
            'SELECT log, state, held_by IS NOT NULL AS held, count(*) AS n FROM main.hf_outbox GROUP BY 1, 2, 3 ORDER BY 1, 2, 3',
          )
          .all();
        expect(readTally(database)).toEqual(
          counted.map(({ log, state, held, n }) => ({ log, state, isHeld: held === 1, count: n })),
        );
      }
      database.close();
    }),
    { numRuns: 60 },
  );
});
