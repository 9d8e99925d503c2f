import { describe, expect, test } from 'vitest';
import type { EventDraft } from './events.ts';
import { draftOf, operationOf, rebaseOn } from './model-ledger.fixture.ts';
import { chain, DELETE, del, eventsOf, FIELDS, keep, ledgerWith, outcomes, send, set } from './rebase.fixture.ts';
import type { PendingOperation } from './rebase.ts';

describe('edit against delete', () => {
  test('[MG5] keep: my edit of what they deleted is written as restore, with all that stood before', () => {
    const ledger = ledgerWith(set({ y: 1 }), DELETE);
    const mine = chain(set({ x: 5 }));
    const results = rebaseOn(ledger, mine, keep);
    expect(eventsOf(results[0])[0]).toMatchObject({
      id: 'mine0',
      change: { op: 'restore', fields: { ...FIELDS, x: 5, y: 1 } },
      base: 3,
      meta: { holdfast: { under: 'keep', seen: 1 } },
    });
    expect(send(ledger, mine, results)).toEqual(['accepted']);
    expect(ledger.state?.fields).toEqual({ ...FIELDS, x: 5, y: 1 });
  });

  test('[MG5] keep: what follows the kept edit is put on it', () => {
    const ledger = ledgerWith(DELETE);
    const mine = chain(set({ x: 5 }), { op: 'update', inc: { n: 1 } }, { op: 'put', set: { y: 1 } });
    const results = rebaseOn(ledger, mine, keep);
    expect(results.map((result) => eventsOf(result)[0]?.change.op)).toEqual(['restore', 'update', 'put']);
    expect(send(ledger, mine, results)).toEqual(['accepted', 'accepted', 'accepted']);
    expect(ledger.state?.fields).toEqual({ ...FIELDS, n: 2, x: 5, y: 1 });
  });

  test('[MG5] keep: what was sent on its own after the kept edit, on the old base, is not stopped by the deletion again', () => {
    const ledger = ledgerWith(DELETE);
    const [first, late] = chain(set({ x: 5 }), set({ y: 1 })) as [PendingOperation, PendingOperation];
    send(ledger, [first], rebaseOn(ledger, [first], keep));
    expect(ledger.push(late).code).toBe('version-conflict');
    const results = rebaseOn(ledger, [late]);
    expect(send(ledger, [late], results)).toEqual(['accepted']);
    expect(ledger.state?.fields).toEqual({ ...FIELDS, x: 5, y: 1 });
  });

  test('[MG5] keep: my delete of what they edited is dropped, and I am told', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const results = rebaseOn(ledger, chain(DELETE), keep);
    expect(results).toEqual([
      {
        outcome: 'nothing-left',
        actionId: 'action of mine0',
        notices: [
          {
            kind: 'not-deleted',
            eventId: 'mine0',
            entityType: 'issue',
            entityId: 'i',
            field: null,
            by: 'ben',
            at: '2026-01-01T00:00:00.000Z',
          },
        ],
      },
    ]);
  });

  test('[MG5] keep: what follows a dropped delete names what was below it, and is asked about if it built on it', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const mine = chain(set({ y: 1 }), DELETE, { op: 'put', set: { z: 1 } });
    const results = rebaseOn(ledger, mine, keep);
    expect(outcomes(results)).toEqual(['rebased', 'nothing-left', 'rebased']);
    expect(eventsOf(results[2])[0]).toMatchObject({ prior: 'mine0', base: 2 });
    expect(send(ledger, mine, results)).toEqual(['accepted', 'nothing-left', 'accepted']);
    const undone = chain(DELETE, { op: 'restore', fields: FIELDS });
    expect(outcomes(rebaseOn(ledgerWith(set({ x: 1 })), undone, keep))).toEqual(['nothing-left', 'parked']);
  });

  test('[MG5] delete: the deletion stands over my edit, and I am told', () => {
    const results = rebaseOn(ledgerWith(DELETE), chain(set({ x: 5 }), set({ y: 1 })), del);
    expect(results).toMatchObject([
      { outcome: 'nothing-left', notices: [{ kind: 'overwritten', eventId: 'mine0', by: 'ben' }] },
      { outcome: 'nothing-left', notices: [{ kind: 'overwritten', eventId: 'mine1', by: 'ben' }] },
    ]);
  });

  test('[MG5] delete: my deletion stands over their edit, and says up to where I had seen', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const mine = chain(DELETE);
    const results = rebaseOn(ledger, mine, del);
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2, meta: { holdfast: { under: 'delete', seen: 1 } } });
    expect(send(ledger, mine, results)).toEqual(['accepted']);
    expect(ledger.state).toBeUndefined();
  });

  test('[MG5] a deletion that is carried further a second time still says what its author really saw', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const first = eventsOf(rebaseOn(ledger, chain(DELETE), del)[0]);
    ledger.push(operationOf(draftOf('later', set({ y: 1 }), 2)));
    const [second] = eventsOf(rebaseOn(ledger, [operationOf(...first)], del)[0]);
    expect(second).toMatchObject({ base: 3, meta: { holdfast: { under: 'delete', seen: 1 } } });
  });

  test('[MG5] ask: both ways are parked', () => {
    expect(outcomes(rebaseOn(ledgerWith(DELETE), chain(set({ x: 5 }))))).toEqual(['parked']);
    expect(outcomes(rebaseOn(ledgerWith(set({ x: 1 })), chain(DELETE)))).toEqual(['parked']);
  });

  test('[MG5] keep and delete decide about the deletion only: a field that clashes asks', () => {
    for (const policy of [keep, del])
      expect(outcomes(rebaseOn(ledgerWith(set({ x: 1 }), DELETE), chain(set({ x: 5 })), policy))).toEqual(['parked']);
  });

  test('[MG5] an edit is not kept where what stood before the deletion is not known', () => {
    const ledger = ledgerWith(DELETE);
    const factsOf = () => ({ ...ledger.facts(), lastFields: undefined });
    expect(outcomes(rebaseOn(ledger, chain(set({ x: 5 })), { ...keep, factsOf }))).toEqual(['parked']);
  });

  test('[MG5] what they deleted and brought back asks', () => {
    const theirs = [DELETE, { op: 'restore', fields: FIELDS }] as const;
    for (const mine of [set({ x: 5 }), DELETE])
      for (const policy of [keep, del])
        expect(outcomes(rebaseOn(ledgerWith(...theirs), chain(mine), policy))).toEqual(['parked']);
  });

  test('[MG5] both deleted it: nobody is asked, and it stays deleted', () => {
    const ledger = ledgerWith(set({ x: 1 }), DELETE);
    expect(ledger.push(chain(DELETE)[0] as PendingOperation).code).toBe('version-conflict');
    expect(rebaseOn(ledger, chain(DELETE), keep)).toMatchObject([{ outcome: 'nothing-left', notices: [] }]);
    const mine = chain(set({ y: 5 }), DELETE);
    const results = rebaseOn(ledger, mine, keep);
    expect(send(ledger, mine, results)).toEqual(['accepted', 'accepted']);
    expect(ledger.state).toBeUndefined();
  });

  test('[MG5] meta of the author is kept beside the mark', () => {
    const [mine] = chain(set({ x: 5 })) as [PendingOperation];
    const event = { ...(mine.events[0] as EventDraft), meta: { via: 'cli' } };
    const [written] = eventsOf(rebaseOn(ledgerWith(DELETE), [operationOf(event)], keep)[0]);
    expect(written?.meta).toEqual({ via: 'cli', holdfast: { under: 'keep', seen: 1, edited: ['x'] } });
  });
});
