import { describe, expect, test } from 'vitest';
import type { Change, EventDraft } from './events.ts';
import { draftOf, ModelLedger, operationOf, rebaseOn } from './model-ledger.fixture.ts';
import { noticesOf } from './notices.ts';
import { DELETE, del, FIELDS, keep, ledgerWith, send, set } from './rebase.fixture.ts';

describe('notices', () => {
  const last = (x: number): Change => ({ op: 'update', set: { x }, rules: { x: 'last' } });
  const mineOf = (ledger: ModelLedger) => ledger.events.filter(({ id }) => id.startsWith('mine'));
  /** Ingests the last event of the ledger beside the own ones before it. */
  function told(ledger: ModelLedger, before: ModelLedger) {
    const event = ledger.events.at(-1) as (typeof ledger.events)[0];
    return noticesOf({ event, before: before.state?.fields, mine: mineOf(ledger) });
  }

  function after(first: Change, second: EventDraft) {
    const before = ledgerWith();
    before.push(operationOf(draftOf('mine0', first, 1)));
    const ledger = new ModelLedger(before);
    expect(ledger.push(operationOf(second), 'ben').code).toBe('accepted');
    return told(ledger, before);
  }

  test('[MG6] under last, a value of mine that was replaced unseen is told, with both values', () => {
    expect(after(last(5), draftOf('their', last(6), 1))).toEqual([
      {
        kind: 'overwritten',
        eventId: 'mine0',
        entityType: 'issue',
        entityId: 'i',
        field: 'x',
        mine: 5,
        theirs: 6,
        by: 'ben',
        at: '2026-01-01T00:00:00.000Z',
      },
    ]);
    const unset: Change = { op: 'update', unset: ['x'], rules: { x: 'last' } };
    expect(after(last(5), draftOf('their', unset, 1))).toMatchObject([{ mine: 5 }]);
    expect(after(unset, draftOf('their', last(6), 1))).toMatchObject([{ theirs: 6 }]);
  });

  test('[MG6] what its author had seen, an equal value, and max are not told', () => {
    expect(after(last(5), draftOf('their', last(6), 2))).toEqual([]);
    expect(after(last(5), draftOf('their', last(5), 1))).toEqual([]);
    const max = (x: number): Change => ({ op: 'update', set: { x }, rules: { x: 'max' } });
    expect(after(max(5), draftOf('their', max(6), 1))).toEqual([]);
    expect(after(set({ y: 5 }), draftOf('their', last(6), 1))).toEqual([]);
  });

  test('[MG6] a value that was gone already is not told again', () => {
    const before = ledgerWith();
    before.push(operationOf(draftOf('mine0', last(5), 1)));
    before.push(operationOf(draftOf('their0', last(6), 1)));
    const ledger = new ModelLedger(before);
    ledger.push(operationOf(draftOf('their1', last(7), 1)));
    expect(told(ledger, before)).toEqual([]);
  });

  test('[MG6] a deletion of mine over which an edit was kept is told', () => {
    const before = ledgerWith();
    before.push(operationOf(draftOf('mine0', DELETE, 1)));
    const ledger = new ModelLedger(before);
    const their = [operationOf(draftOf('their', set({ x: 6 }), 1))];
    expect(send(ledger, their, rebaseOn(ledger, their, keep))).toEqual(['accepted']);
    expect(told(ledger, before)).toMatchObject([{ kind: 'not-deleted', eventId: 'mine0', field: null }]);
    const knowing = new ModelLedger(before);
    knowing.push(operationOf(draftOf('their', { op: 'restore', fields: FIELDS }, 2)));
    expect(told(knowing, before)).toEqual([]);
  });

  test('[MG6] an edit of mine over which a deletion stood is told', () => {
    const before = ledgerWith();
    before.push(operationOf(draftOf('mine0', set({ x: 5 }), 1)));
    const ledger = new ModelLedger(before);
    const their = [operationOf(draftOf('their', DELETE, 1))];
    expect(send(ledger, their, rebaseOn(ledger, their, del))).toEqual(['accepted']);
    expect(told(ledger, before)).toMatchObject([{ kind: 'overwritten', eventId: 'mine0', field: null }]);
    const knowing = new ModelLedger(before);
    knowing.push(operationOf(draftOf('their', DELETE, 2)));
    expect(told(knowing, before)).toEqual([]);
  });
});
