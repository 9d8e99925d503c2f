import { describe, expect, test } from 'vitest';
import type { Change } from './events.ts';
import type { JsonObject } from './json.ts';
import { draftOf, ModelLedger, operationOf, rebaseOn } from './model-ledger.fixture.ts';
import { chain, DELETE, eventsOf, FIELDS, inOne, ledgerWith, outcomes, send, set } from './rebase.fixture.ts';
import type { PendingOperation } from './rebase.ts';

describe('what holds is made again', () => {
  test('[OB3] a rebased event keeps its ids, instant and salt, and gets a new base', () => {
    const ledger = ledgerWith(set({ y: 1 }));
    const [mine] = chain(set({ x: 5 }));
    const [event] = eventsOf(rebaseOn(ledger, [mine as PendingOperation])[0]);
    expect(event).toEqual({ ...mine?.events[0], base: 2 });
  });

  test('[OB3] a chain is rebased whole, keeps its links, and is accepted at once', () => {
    const ledger = ledgerWith(set({ y: 1 }), { op: 'update', inc: { n: 5 } });
    const mine = chain(set({ x: 5 }), { op: 'update', inc: { n: 1 } }, set({ x: 6 }));
    const results = rebaseOn(ledger, mine);
    expect(results.map((result) => eventsOf(result)[0]?.prior)).toEqual([undefined, 'mine0', 'mine1']);
    expect(results.map((result) => eventsOf(result)[0]?.base)).toEqual([3, 3, 3]);
    expect(send(ledger, mine, results)).toEqual(['accepted', 'accepted', 'accepted']);
    expect(ledger.state?.fields).toEqual({ n: 7, s: ['a'], x: 6, y: 1 });
  });

  test('[OB3] a link to own work that is in the log already stays', () => {
    const ledger = ledgerWith();
    const [first, second] = chain(set({ x: 5 }), set({ x: 6 })) as [PendingOperation, PendingOperation];
    ledger.push(first);
    ledger.push(operationOf(draftOf('their', set({ y: 1 }), 2)));
    const results = rebaseOn(ledger, [second]);
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 3, prior: 'mine0' });
    expect(send(ledger, [second], results)).toEqual(['accepted']);
  });

  test('[OB3] what nothing of theirs touches keeps its bytes', () => {
    const ledger = ledgerWith();
    expect(rebaseOn(ledger, chain(set({ x: 5 })))).toEqual([{ outcome: 'unchanged', actionId: 'action of mine0' }]);
  });

  test('[MG1] the author merges what the ledger may not', () => {
    const ledger = ledgerWith(set({ y: 1 }));
    const [mine] = chain(set({ x: 5 })) as [PendingOperation];
    const byAuthor: PendingOperation = { ...mine, merge: 'author' };
    expect(ledger.push(byAuthor).code).toBe('version-conflict');
    const results = rebaseOn(ledger, [byAuthor]);
    expect(send(ledger, [byAuthor], results)).toEqual(['accepted']);
    expect(ledger.state?.fields).toEqual({ ...FIELDS, x: 5, y: 1 });
  });

  test('[MG1] a long chain is judged against thousands of theirs without examining them again each time', () => {
    const ledger = ledgerWith();
    for (let at = 1; at <= 3_000; at += 1)
      ledger.events.push({
        ...(ledger.events[0] as (typeof ledger.events)[0]),
        id: `t${at}`,
        entityVersion: at + 1,
        change: { op: 'update', inc: { n: 1 } },
      });
    const mine = chain(...Array.from({ length: 300 }, (_, at) => set({ x: at })));
    expect(new Set(outcomes(rebaseOn(ledger, mine)))).toEqual(new Set(['rebased']));
  });
});

describe('what does not hold', () => {
  test('[OB6] a clash is parked with base, mine and theirs per field, who and when', () => {
    const ledger = ledgerWith(set({ x: 1, y: 7 }), { op: 'update', remove: { s: ['a'] } });
    const [mine] = chain({ op: 'update', set: { x: 5, z: 1 }, inc: { n: 1 }, add: { s: ['a', 'b'] } }) as [
      PendingOperation,
    ];
    const seenBefore = (_: string, field: string) => FIELDS[field];
    const [result] = rebaseOn(ledger, [mine], { seenBefore });
    const about = {
      eventId: 'mine0',
      entityType: 'issue',
      entityId: 'i',
      mineOp: 'update',
      theirsOp: 'update',
      by: 'ben',
      at: '2026-01-01T00:00:00.000Z',
    };
    expect(result).toEqual({
      outcome: 'parked',
      actionId: 'action of mine0',
      kind: 'clash',
      rules: [],
      facts: [
        { ...about, field: 's', base: ['a'], mine: ['a', 'b'], theirs: [] },
        { ...about, field: 'x', base: 0, mine: 5, theirs: 1 },
      ],
    });
  });

  test('[OB6] a clash about the whole entity shows what was written, beside what the entity was', () => {
    const ledger = ledgerWith(set({ x: 1 }), DELETE);
    const [result] = rebaseOn(ledger, chain(set({ x: 5 })), { seenBefore: () => 0 });
    expect(result).toMatchObject({
      facts: [
        { field: null, mineOp: 'update', theirsOp: 'delete' },
        { field: 'x', base: 0, mine: 5, theirs: 1 },
      ],
    });
  });

  test('[OB1 ST2] what follows a parked operation is held, and other work flows', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const [first, second] = chain(set({ x: 5 }), set({ y: 5 })) as [PendingOperation, PendingOperation];
    const needing: PendingOperation = { ...operationOf(draftOf('other', set({ z: 1 }), 1)), needs: [second.actionId] };
    const free = operationOf(draftOf('free', set({ q: 1 }), 1));
    const results = rebaseOn(ledger, [first, second, needing, free]);
    expect(outcomes(results)).toEqual(['parked', 'held', 'held', 'rebased']);
    expect(results[2]).toEqual({ outcome: 'held', actionId: needing.actionId, by: first.actionId });
  });

  test('[EV3] one event that clashes parks its whole operation, and takes back what the others did', () => {
    const ledger = ledgerWith(set({ x: 1 }));
    const both = inOne(...chain(set({ y: 5 }), set({ x: 5 })));
    const after = operationOf(draftOf('after', { op: 'update', inc: { y: 1 } }, 1));
    expect(outcomes(rebaseOn(ledger, [both, after]))).toEqual(['parked', 'rebased']);
  });

  test('[EV6] what no longer folds is parked', () => {
    const ledger = ledgerWith({ op: 'update', inc: { n: Number.MAX_SAFE_INTEGER - 1 } });
    expect(outcomes(rebaseOn(ledger, chain({ op: 'update', inc: { n: 1 } })))).toEqual(['parked']);
  });
});

describe('invariants', () => {
  const brokenRules = (_: string, fields: JsonObject) =>
    fields['x'] === 9 && fields['y'] === 9 ? ['not both nine'] : [];

  test('[MG4] a merge that breaks an invariant which held before is parked, by its name', () => {
    const ledger = ledgerWith(set({ y: 9 }));
    const [result] = rebaseOn(ledger, chain(set({ x: 9 })), { brokenRules });
    expect(result).toMatchObject({ outcome: 'parked', kind: 'rule', rules: ['not both nine'], facts: [] });
  });

  test('[MG4] one that the confirmed state breaks already is not held against the operation', () => {
    const ledger = ledgerWith(set({ x: 9, y: 9 }));
    expect(outcomes(rebaseOn(ledger, chain(set({ z: 1 })), { brokenRules }))).toEqual(['rebased']);
  });

  test('[MG4] it counts at the end of an operation, not inside, and what is created must keep all', () => {
    const ledger = ledgerWith(set({ y: 9 }));
    const mended = inOne(...chain(set({ x: 9 }), set({ x: 8 })));
    expect(outcomes(rebaseOn(ledger, [mended], { brokenRules }))).toEqual(['rebased']);
    const created = operationOf(draftOf('new', { op: 'put', set: { x: 9, y: 9 } }, 0));
    expect(outcomes(rebaseOn(new ModelLedger(), [created], { brokenRules }))).toEqual(['parked']);
  });

  test('[MG4] what comes after a parked operation is judged as if that had never been', () => {
    const ledger = ledgerWith(set({ y: 9 }));
    const free = operationOf(draftOf('free', { op: 'update', inc: { x: 1 } }, 1));
    const strict = (_: string, fields: JsonObject) => (fields['x'] === 'text' ? ['x'] : []);
    const results = rebaseOn(ledger, [...chain(set({ x: 'text' })), free], { brokenRules: strict });
    expect(outcomes(results)).toEqual(['parked', 'rebased']);
  });
});

describe('what theirs did already', () => {
  test('[MG1] the same delete keeps its bytes, since the ledger takes it on its old base only', () => {
    const ledger = ledgerWith(DELETE);
    const [mine] = chain(DELETE) as [PendingOperation];
    expect(outcomes(rebaseOn(ledger, [mine]))).toEqual(['unchanged']);
    expect(ledger.push(mine)).toEqual({ code: 'accepted', verdicts: ['same'] });
  });

  test('[MG1] where the author merges it is left out', () => {
    const [mine] = chain(DELETE) as [PendingOperation];
    expect(outcomes(rebaseOn(ledgerWith(DELETE), [{ ...mine, merge: 'author' }]))).toEqual(['nothing-left']);
  });

  test('[MG1] an equal create counts as one: what follows it is put on theirs', () => {
    const create: Change = { op: 'create', fields: { x: 1 } };
    const mine = [
      operationOf(draftOf('m0', create, 0)),
      operationOf(draftOf('m1', set({ x: 2 }), 0, 'm0')),
      operationOf(draftOf('m2', set({ x: 3 }), 0, 'm1')),
    ];
    for (const merge of ['fields', 'author'] as const) {
      const ledger = new ModelLedger();
      ledger.push(operationOf(draftOf('t0', create, 0)));
      ledger.push(operationOf(draftOf('t1', set({ y: 2 }), 1)));
      const operations = mine.map((operation) => ({ ...operation, merge }));
      const results = rebaseOn(ledger, operations);
      expect(outcomes(results)).toEqual([merge === 'fields' ? 'unchanged' : 'nothing-left', 'rebased', 'rebased']);
      expect(send(ledger, operations, results).at(-1)).toBe('accepted');
      expect(ledger.state?.fields).toEqual({ x: 3, y: 2 });
    }
  });

  test('[EV6] a create on a deleted id, whose deletion came by bootstrap, is written as restore', () => {
    const ledger = ledgerWith(DELETE);
    const mine = [operationOf(draftOf('m', { op: 'create', fields: { x: 1 } }, 0))];
    expect(ledger.push(mine[0] as PendingOperation).code).toBe('version-conflict');
    const results = rebaseOn(ledger, mine, { factsOf: () => ({ ...ledger.facts(), events: [] }) });
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2, change: { op: 'restore', fields: { x: 1 } } });
    expect(send(ledger, mine, results)).toEqual(['accepted']);
    expect(ledger.state?.fields).toEqual({ x: 1 });
  });

  test('[MG2] a create beside their put of one keyed id is written as put, and merges by field', () => {
    const ledger = new ModelLedger();
    ledger.push(operationOf(draftOf('t', { op: 'put', set: { x: 1 } }, 0)));
    const mine = [operationOf(draftOf('m', { op: 'create', fields: { x: 1, y: 2 } }, 0))];
    const results = rebaseOn(ledger, mine);
    expect(eventsOf(results[0])[0]?.change).toEqual({ op: 'put', set: { x: 1, y: 2 } });
    expect(send(ledger, mine, results)).toEqual(['accepted']);
    expect(ledger.state?.fields).toEqual({ x: 1, y: 2 });
  });
});
