import { describe, expect, test } from 'vitest';
import type { Change, EventDraft } from './events.ts';
import type { JsonObject } from './json.ts';
import { draftOf, ModelLedger, operationOf, rebaseOn } from './model-ledger.fixture.ts';
import { noticesOf } from './notices.ts';
import type { PendingOperation, Rebased } from './rebase.ts';
import { resolutionEffect } from './resolution.ts';

const set = (fields: JsonObject): Change => ({ op: 'update', set: fields });
const DELETE: Change = { op: 'delete' };
const FIELDS: JsonObject = { n: 1, s: ['a'], x: 0 };

/** A ledger with the entity at version 1, and what others, who see everything, did to it after that. */
function ledgerWith(...theirs: Change[]): ModelLedger {
  const ledger = new ModelLedger();
  ledger.push(operationOf(draftOf('base', { op: 'create', fields: FIELDS }, 0)));
  theirs.forEach((change, at) => {
    expect(ledger.push(operationOf(draftOf(`their${at}`, change, at + 1)), 'ben').code).toBe('accepted');
  });
  return ledger;
}

/** Own work on version 1: one operation per change, each on top of the one before. */
const chain = (...changes: Change[]): PendingOperation[] =>
  changes.map((change, at) => operationOf(draftOf(`mine${at}`, change, 1, at === 0 ? undefined : `mine${at - 1}`)));
const inOne = (...operations: PendingOperation[]): PendingOperation => ({
  ...(operations[0] as PendingOperation),
  events: operations.flatMap(({ events }) => events),
});

const eventsOf = (result: Rebased | undefined): readonly EventDraft[] => {
  if (result?.outcome !== 'rebased') throw new Error(`expected rebased, got ${JSON.stringify(result)}`);
  return result.events;
};
const outcomes = (results: readonly Rebased[]) => results.map(({ outcome }) => outcome);

/** Sends what a replica made of its work, as one does. */
function send(ledger: ModelLedger, operations: readonly PendingOperation[], results: readonly Rebased[]): string[] {
  return results.map((result, at) => {
    if (result.outcome !== 'rebased' && result.outcome !== 'unchanged') return result.outcome;
    const operation = operations[at] as PendingOperation;
    return ledger.push(result.outcome === 'rebased' ? { ...operation, events: result.events } : operation).code;
  });
}

const keep = { editedWhileDeleted: () => 'keep' as const };
const del = { editedWhileDeleted: () => 'delete' as const };

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

describe('dependents of a resolved operation', () => {
  /** `mine0` sets x against their x; it is parked, and these follow it. */
  const resolve = (
    dependents: readonly Change[],
    choice: 'mine' | 'theirs' | Change,
    options: { parked?: Change; theirs?: Change[]; replacement?: string | null } = {},
  ) => {
    const parked = options.parked ?? set({ x: 5 });
    const ledger = ledgerWith(...(options.theirs ?? [set({ x: 1 })]));
    const replacement = choice === 'theirs' ? [] : [choice === 'mine' ? parked : choice];
    const effect = resolutionEffect({ parked: [parked], confirmed: ledger.state?.fields, replacement });
    const operations = chain(parked, ...dependents).slice(1);
    const results = rebaseOn(ledger, operations, {
      ...keep,
      priorOf: () => undefined,
      resolved: {
        replacementOf: (id) => (id === 'mine0' ? (replacement.length > 0 ? 'resolution' : null) : undefined),
        effectOn: () => effect,
      },
    });
    return { ledger, operations, results };
  };

  test('[ST3] theirs was chosen: work on other fields holds, work on the same field is parked', () => {
    const { results } = resolve([set({ y: 1 }), set({ x: 6 })], 'theirs');
    expect(outcomes(results)).toEqual(['rebased', 'parked']);
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2 });
    expect(eventsOf(results[0])[0]).not.toHaveProperty('prior');
  });

  test('[ST3] mine was chosen: what was made on it holds, and names the resolution', () => {
    const { results } = resolve([set({ x: 6 }), set({ y: 1 })], 'mine');
    expect(outcomes(results)).toEqual(['rebased', 'rebased']);
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2, prior: 'resolution' });
    expect(eventsOf(results[1])[0]).toMatchObject({ base: 2, prior: 'mine1' });
  });

  test('[ST3] another value was chosen: what was made on the old one is parked', () => {
    expect(outcomes(resolve([set({ x: 6 })], set({ x: 7 })).results)).toEqual(['parked']);
  });

  test('[ST3] a discarded create takes its ground from what was made on it, and MG5 is not asked', () => {
    const ledger = new ModelLedger();
    const create: Change = { op: 'create', fields: { x: 1 } };
    const effect = resolutionEffect({ parked: [create], confirmed: undefined, replacement: [] });
    expect(effect.changes).toEqual([DELETE]);
    const dependent = operationOf(draftOf('m1', set({ y: 1 }), 0, 'm0'));
    const results = rebaseOn(ledger, [dependent], {
      ...keep,
      resolved: { replacementOf: (id) => (id === 'm0' ? null : undefined), effectOn: () => effect },
    });
    expect(results).toMatchObject([
      { outcome: 'parked', kind: 'clash', facts: [{ field: null }, { field: 'y', mine: 1 }] },
    ]);
  });

  test('[ST3] a value that was discarded takes its ground from what replaced it, without anything of theirs', () => {
    expect(outcomes(resolve([set({ x: 6 })], 'theirs', { theirs: [] }).results)).toEqual(['parked']);
    expect(outcomes(resolve([set({ y: 6 })], 'theirs', { theirs: [] }).results)).toEqual(['rebased']);
  });

  test('[ST3] theirs that nobody resolved still counts', () => {
    const { results } = resolve([set({ y: 6 })], 'mine', { theirs: [set({ x: 1, y: 2 })] });
    expect(outcomes(results)).toEqual(['parked']);
  });

  test('[ST3] an edit that a person brought back carries what follows it', () => {
    const ledger = ledgerWith(DELETE);
    const resolution: Change = { op: 'restore', fields: { ...FIELDS, x: 5 } };
    const effect = resolutionEffect({
      parked: [set({ x: 5 })],
      confirmed: undefined,
      lastFields: FIELDS,
      replacement: [resolution],
    });
    expect(effect).toEqual({ changes: [], answered: ['x'], now: { ...FIELDS, x: 5 } });
    const [, late] = chain(set({ x: 5 }), set({ y: 1 })) as [PendingOperation, PendingOperation];
    const results = rebaseOn(ledger, [late], {
      ...keep,
      resolved: { replacementOf: (id) => (id === 'mine0' ? 'resolution' : undefined), effectOn: () => effect },
    });
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2, prior: 'resolution', change: set({ y: 1 }) });
  });

  test('[ST3] the chain below closed work is still the author’s own', () => {
    const ledger = ledgerWith();
    const operations = chain(set({ x: 5 }), set({ x: 6 }), set({ x: 7 })) as [
      PendingOperation,
      PendingOperation,
      PendingOperation,
    ];
    ledger.push(operations[0]);
    const options = {
      priorOf: (id: string) => (id === 'mine1' ? 'mine0' : undefined),
      resolved: { replacementOf: (id: string) => (id === 'mine1' ? null : undefined), effectOn: () => undefined },
    };
    const results = rebaseOn(ledger, [operations[2]], options);
    expect(eventsOf(results[0])[0]).toMatchObject({ base: 2, prior: 'mine0' });
  });
});

describe('what a resolution changed', () => {
  const effect = (parked: Change[], confirmed: JsonObject | undefined, replacement: Change[] = []) => {
    const { changes, answered } = resolutionEffect({ parked, confirmed, replacement });
    return { changes, answered };
  };

  test('[ST3] a value that was taken back is as if they had set theirs', () => {
    expect(effect([set({ x: 5, y: 6 })], { x: 1 })).toEqual({
      changes: [
        { op: 'update', set: { x: 1 } },
        { op: 'update', unset: ['y'] },
      ],
      answered: [],
    });
    expect(effect([{ op: 'update', unset: ['x'] }], { x: 1 })).toEqual({ changes: [set({ x: 1 })], answered: [] });
  });

  test('[ST3] counters and sets are taken back by what was done, so that work that commutes holds', () => {
    const parked: Change = { op: 'update', inc: { n: 2 }, add: { s: ['b'] }, remove: { s: ['a'] } };
    const { changes } = effect([parked], { n: 5, s: ['a', 'c'] });
    expect(changes).toEqual([
      { op: 'update', inc: { n: -2 } },
      { op: 'update', add: { s: ['a'] }, remove: { s: ['b'] } },
    ]);
    expect(effect([parked], { n: 5, s: ['a'] }, [parked])).toEqual({ changes: [], answered: ['n', 's'] });
    expect(effect([parked], { n: 5, s: ['a'] }, [{ op: 'update', set: { n: 9 }, add: { s: ['b'] } }]).changes).toEqual([
      set({ n: 9 }),
      { op: 'update', add: { s: ['a'] } },
    ]);
  });

  test('[ST3] several changes of one operation count as their sum', () => {
    const parked: Change[] = [set({ x: 5 }), { op: 'update', inc: { x: 1, n: 1 } }, { op: 'update', inc: { n: 2 } }];
    expect(effect(parked, { x: 6, n: 0 })).toEqual({ changes: [{ op: 'update', inc: { n: -3 } }], answered: ['x'] });
    const sets: Change[] = [
      set({ s: ['a'] }),
      { op: 'update', add: { s: ['b'] } },
      { op: 'update', remove: { s: ['a'] } },
    ];
    expect(effect(sets, { s: ['b'] })).toEqual({ changes: [], answered: ['s'] });
  });

  test('[ST3] fields that only the resolution wrote are changes too', () => {
    expect(effect([set({ x: 5 })], { x: 1, z: 1 }, [set({ x: 5, z: 2 })])).toEqual({
      changes: [set({ z: 2 })],
      answered: ['x'],
    });
  });

  test('[ST3] an edit that was brought back changed nothing but what it was resolved to', () => {
    const parked = [set({ x: 5 })];
    const replacement: Change[] = [{ op: 'restore', fields: { x: 5, y: 1, z: 1 } }];
    expect(effect(parked, undefined, replacement)).toEqual({ changes: [], answered: ['x'] });
    const known = resolutionEffect({ parked, confirmed: undefined, lastFields: { x: 0, y: 1, z: 0 }, replacement });
    expect(known.changes).toEqual([set({ z: 1 })]);
  });

  test('[ST3] entities come and go', () => {
    expect(effect([set({ x: 5 })], undefined).changes).toEqual([DELETE]);
    expect(effect([DELETE], { x: 1 }).changes).toEqual([{ op: 'restore', fields: { x: 1 } }]);
    expect(effect([DELETE], { x: 1 }, [DELETE])).toEqual({ changes: [], answered: [] });
    expect(effect([{ op: 'create', fields: { x: 1 } }], undefined, [{ op: 'create', fields: { x: 1, y: 2 } }])).toEqual(
      {
        changes: [set({ y: 2 })],
        answered: ['x'],
      },
    );
  });
});

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
