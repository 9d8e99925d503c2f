import { defineSchema, type EventDraft, entity, ref, schemaData, text } from '@holdfast/core';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { wholeAgain } from './kept-drafts.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    issue: entity({ title: text(), body: text({ optional: true }) }),
    note: entity({ body: text(), issue: ref('issue') }),
  }),
);

const devices: Device[] = [];
const device = (seed: number, account = 'ana') => {
  const made = new Device({ schema, seed, account });
  devices.push(made);
  return made;
};
afterEach(() => {
  for (const one of devices.splice(0)) {
    expect(examine(one.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    one.remove();
  }
});

/** Version 1 in a backup; Ana's second and third are acknowledged, then the backup is restored. */
function rewound() {
  const ledger = new TinyLedger(nodeDigest);
  const ana = device(1);
  ana.bootstrap(ledger);
  ana.create('issue', { title: 'A' }, 'i');
  ana.settle(ledger);
  const lost = [
    ana.update('issue', 'i', { title: 'B' }),
    ana.commit([{ do: 'create', entity: 'note', id: 'n', fields: { body: 'n', issue: 'i' } }]),
  ];
  ana.settle(ledger);
  return { ana, before: ledger, ledger: ledger.restoredTo(1), lost };
}

describe('a ledger that has lost acknowledged work', () => {
  test('[F93 HL1] own operations above the common version go back into the outbox, ids and bytes as they were', () => {
    const { ana, before, ledger, lost } = rewound();
    expect(ana.handshake(ledger)).toMatchObject({ status: 'history-changed', commonVersion: 1 });
    expect(ana.state.log('main')?.blocked).toMatchObject({ code: 'history-changed', facts: { commonVersion: 1 } });
    expect(ana.state.counts()).toMatchObject({ unsent: 2, lost: 2 });
    const stored = ana.database.prepare('SELECT request_id, state FROM main.hf_outbox ORDER BY seq').all();
    expect(stored.map((row) => ({ ...row }))).toEqual(
      before.events.slice(1).map(({ requestId }) => ({ request_id: requestId, state: 'lost' })),
    );
    expect(ana.state.outcome(lost[0] ?? '')).toMatchObject({
      state: 'needs-attention',
      fault: { code: 'history-changed' },
    });
    expect(ana.take()).toEqual([]);
  });

  test('[HL1] commits go on, and what names lost work is held', () => {
    const { ana, before, ledger } = rewound();
    const onTop = ana.update('issue', 'i', { title: 'C' });
    ana.take();
    ana.state.markUnknown([onTop], { code: 'request-timeout' }, null);
    void before;
    ana.handshake(ledger);
    expect(ana.state.commit(ana.request([{ do: 'update', entity: 'issue', id: 'i', set: { body: 'x' } }])).ok).toBe(
      true,
    );
    expect(ana.row('issue', 'i')).toMatchObject({ title: 'C', body: 'x', sync: 'attention' });
  });

  test('[HL1] work that is found again where it was is confirmed again, and nothing is sent twice', () => {
    const { ana, before, ledger, lost } = rewound();
    ana.handshake(ledger);
    expect(ana.handshake(before)).toMatchObject({ status: 'ok', signature: 'equal' });
    expect([ana.state.counts().unsent, ana.state.log('main')?.blocked, ana.state.outcome(lost[1] ?? '')]).toEqual([
      0,
      null,
      { state: 'ordered', log: 'main', version: 3 },
    ]);
    expect(ana.row('issue', 'i')).toMatchObject({ title: 'B', sync: 'synced' });
  });

  test('[HL4] adopt takes the ledger, offers the lost work on it, and both say the same', () => {
    const { ana, ledger } = rewound();
    ana.handshake(ledger);
    ana.adopt(ledger);
    expect(ana.state.log('main')).toMatchObject({ blocked: null, repairing: false, head: 1 });
    ana.settle(ledger);
    expect(ana.state.counts().unsent).toBe(0);
    expect([ledger.entity('issue', 'i')?.fields, ledger.entity('note', 'n')?.fields]).toEqual([
      { title: 'B' },
      { body: 'n', issue: 'i' },
    ]);
  });

  /** Each edit is confirmed before the next is made; the ledger is put back to `version`. */
  function editedTwice(version: number) {
    const before = new TinyLedger(nodeDigest);
    const ana = device(1);
    ana.bootstrap(before);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(before);
    const edits = ['B', 'C'].map((title) => {
      const action = ana.update('issue', 'i', { title });
      ana.settle(before);
      return action;
    });
    const ledger = before.restoredTo(version);
    ana.handshake(ledger);
    return { ana, before, ledger, edits };
  }

  test.each([0, 1])(
    '[HL4 LG4] edits that were made on top of one another are offered so, from version %s on, and do not clash among themselves',
    (version) => {
      const { ana, before, ledger, edits } = editedTwice(version);
      // Committed while nobody has decided yet, on what is lost.
      const last = ana.update('issue', 'i', { title: 'D' });
      ana.adopt(ledger);
      ana.settle(ledger);
      expect([ana.state.desk(), ana.state.counts().unsent]).toEqual([[], 0]);
      expect([...edits, last].map((action) => ana.state.outcome(action)?.state)).toEqual(Array(3).fill('ordered'));
      expect(ledger.entity('issue', 'i')?.fields).toEqual({ title: 'D' });
      const ids = before.events.map(({ id }) => id);
      expect(ledger.events.slice(0, 3).map(({ id, base, prior }) => ({ id, base, prior }))).toEqual([
        { id: ids[0], base: 0, prior: undefined },
        { id: ids[1], base: version, prior: version === 0 ? ids[0] : undefined },
        { id: ids[2], base: version, prior: ids[1] },
      ]);
    },
  );

  test('[HL4 LG4] edits that clash with what the ledger has taken since wait for a person, and the last one decided for wins', () => {
    const { ana, ledger, edits } = editedTwice(1);
    const ben = device(2, 'ben');
    ben.bootstrap(ledger);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ana.adopt(ledger);
    ana.settle(ledger);
    const entryOf = (action: string | undefined) => ana.state.desk().find(({ actionId }) => actionId === action);
    expect(edits.map(entryOf)).toMatchObject(
      ['B', 'C'].map((mine) => ({ kind: 'clash', fields: [{ base: 'A', mine, theirs: 'Ben' }] })),
    );
    for (const action of edits)
      expect(ana.state.resolve({ ids: [entryOf(action)?.id ?? ''], choice: 'mine' })).toMatchObject({ ok: true });
    ana.settle(ledger);
    expect([ledger.entity('issue', 'i')?.fields['title'], ana.state.counts().unsent]).toEqual(['C', 0]);
  });

  test('[HL4] adopt parks lost work that clashes with what the ledger has taken since', () => {
    const { ana, ledger, lost } = rewound();
    const ben = device(2, 'ben');
    ben.bootstrap(ledger);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ana.handshake(ledger);
    ana.adopt(ledger);
    ana.settle(ledger);
    expect(ana.state.desk()).toMatchObject([
      { kind: 'clash', actionId: lost[0], fields: [{ field: 'title', mine: 'B', theirs: 'Ben' }] },
    ]);
    expect([ana.row('issue', 'i'), ledger.entity('note', 'n')?.fields]).toMatchObject([
      { title: 'Ben', sync: 'attention' },
      { body: 'n' },
    ]);
  });

  test("[HL4] others' lost events are kept aside", () => {
    const { ana, ledger } = rewound();
    ana.handshake(ledger);
    ana.adopt(ledger);
    const aside = ana.database.prepare("SELECT count(*) AS n FROM main.hf_event WHERE log LIKE '!main/%'").get();
    expect(aside?.['n']).toBe(2);
  });

  test('[HL4 I03] what only lost events have done is not called done: what waited for it waits for a person', () => {
    const whole = new TinyLedger(nodeDigest);
    const [ana, ben] = [device(1), device(2, 'ben')];
    for (const one of [ana, ben]) one.bootstrap(whole);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(whole);
    ben.settle(whole);
    ana.update('issue', 'i', { title: 'Ana' });
    const same = ana.delete('issue', 'i');
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(whole);
    ana.settle(whole);
    ben.delete('issue', 'i');
    ben.settle(whole);
    ana.settle(whole);
    const ledger = whole.restoredTo(1);
    ana.handshake(ledger);
    expect(ana.state.resolve({ ids: [ana.state.desk()[0]?.id ?? ''], choice: 'theirs' })).toMatchObject({ ok: true });
    expect([ana.state.outcome(same)?.state, ana.state.desk()]).toMatchObject([
      'needs-attention',
      [{ kind: 'clash', actionId: same }],
    ]);
    ana.adopt(ledger);
    expect(ana.state.resolve({ ids: [ana.state.desk()[0]?.id ?? ''], choice: 'mine' })).toMatchObject({ ok: true });
    ana.settle(ledger);
    expect(ledger.entity('issue', 'i')).toBeUndefined();
  });

  /** Ben did all of Ana's work first: hers is done, by his hand, at version 4 of 5. */
  function doneByOthers() {
    const before = new TinyLedger(nodeDigest);
    const [ana, ben] = [device(1), device(2, 'ben')];
    for (const one of [ana, ben]) one.bootstrap(before);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(before);
    ben.settle(before);
    // Ana's delete clashes with nothing, but Ben's edit comes between: what is left to do, his delete has done.
    const work = ana.delete('issue', 'i');
    ben.create('issue', { title: 'one' }, 'one');
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(before);
    ben.delete('issue', 'i');
    ben.create('issue', { title: 'another' }, 'other');
    ben.settle(before);
    ana.settle(before);
    expect(ana.state.outcome(work)).toMatchObject({ state: 'ordered' });
    expect(before.events.some(({ actionId }) => actionId === work)).toBe(false);
    return { ana, before, work };
  }

  test("[HL1 HL4 OB7] work that others did is its author's to offer again, where the ledger has lost theirs", () => {
    const { ana, before, work } = doneByOthers();
    const ledger = before.restoredTo(1);
    ana.handshake(ledger);
    expect(ana.state.outcome(work)).toMatchObject({ state: 'needs-attention', fault: { code: 'history-changed' } });
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(work)?.state, ana.state.counts().unsent, ledger.entity('issue', 'i')]).toEqual([
      'ordered',
      0,
      undefined,
    ]);
  });

  test('[HL4] a ledger that has kept what others did leaves it done', () => {
    const { ana, before, work } = doneByOthers();
    const later = ana.create('issue', { title: 'N' }, 'n');
    ana.settle(before);
    const ledger = before.restoredTo(4);
    ana.handshake(ledger);
    expect([ana.state.outcome(work)?.state, ana.state.counts().lost, later]).toEqual(['ordered', 1, 'n']);
  });

  test('[HL1] where the history is found again, it is done as it was', () => {
    const { ana, before, work } = doneByOthers();
    const outcome = ana.state.outcome(work);
    ana.handshake(before.restoredTo(1));
    ana.handshake(before);
    expect([ana.state.outcome(work), ana.state.counts().unsent, ana.take()]).toEqual([outcome, 0, []]);
    // And is lost again with it.
    ana.handshake(before.restoredTo(1, 'another'));
    expect(ana.state.counts().lost).toBe(1);
  });

  test('[OB7 HL1] what a person discards while it is lost is not offered again', () => {
    const { ana, before, work } = doneByOthers();
    ana.handshake(before.restoredTo(3));
    expect(ana.state.discard([work])).toMatchObject({ ok: true });
    ana.handshake(before.restoredTo(1, 'another'));
    expect([ana.state.outcome(work)?.state, ana.state.counts().unsent]).toEqual(['discarded', 0]);
  });

  test('[HL1 OB6] what a person discards while it is lost stays discarded where the ledger loses more', () => {
    const before = new TinyLedger(nodeDigest);
    const ana = device(1);
    ana.bootstrap(before);
    const [kept, thrown] = ['kept', 'thrown'].map((id) => {
      const action = ana.commit([{ do: 'create', entity: 'issue', id, fields: { title: id } }]);
      ana.settle(before);
      return action;
    }) as [string, string];
    ana.handshake(before.restoredTo(1));
    expect(ana.state.discard([thrown])).toMatchObject({ ok: true });
    const ledger = before.restoredTo(0, 'another');
    ana.handshake(ledger);
    expect([ana.state.outcome(thrown)?.state, ana.state.counts().lost]).toEqual(['discarded', 1]);
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(kept)?.state, ledger.events.length]).toEqual(['ordered', 1]);
  });

  /**
   * Ben deletes, as Ana does, while her action also makes a note and edits another issue: what is left of it is in
   * the log, or waits here where it is not sent.
   */
  function doneInPart({ isSent = true } = {}) {
    const before = new TinyLedger(nodeDigest);
    const [ana, ben] = [device(1), device(2, 'ben')];
    for (const one of [ana, ben]) one.bootstrap(before);
    ana.create('issue', { title: 'A' }, 'i');
    ana.create('issue', { title: 'K' }, 'k');
    ana.settle(before);
    ben.settle(before);
    const work = ana.commit([
      { do: 'create', entity: 'note', id: 'n', fields: { body: 'first', issue: 'k' } },
      { do: 'delete', entity: 'issue', id: 'i' },
      { do: 'update', entity: 'issue', id: 'k', set: { title: 'Ana' } },
    ]);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(before);
    ben.delete('issue', 'i');
    ben.settle(before);
    ana.push(before);
    ana.pullAll(before);
    if (isSent) ana.settle(before);
    const own = before.events.filter(({ actionId }) => actionId === work);
    return { ana, ben, before, work, own };
  }
  const wholeAction = (ledger: TinyLedger, work: string) =>
    ledger.events.flatMap((event) =>
      event.actionId === work ? [`${String(event.entityId)} ${event.change?.op ?? ''}`] : [],
    );

  test('[HL1 HL4 OB7] of an action that others did in part, all is offered again where the ledger has lost both', () => {
    const { ana, before, work, own } = doneInPart();
    expect(own.map(({ entityId }) => entityId)).toEqual(['n', 'k']);
    const ledger = before.restoredTo(2);
    ana.handshake(ledger);
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(work)?.state, ana.state.counts().unsent, ana.state.desk()]).toEqual(['ordered', 0, []]);
    expect(wholeAction(ledger, work)).toEqual(['n create', 'i delete', 'k update']);
    expect([ledger.entity('issue', 'i'), ledger.entity('issue', 'k')?.fields]).toEqual([undefined, { title: 'Ana' }]);
  });

  test('[HL1 OB3] what is left of it comes back as it was sent, and is confirmed again where the history is found', () => {
    const { ana, before, work, own } = doneInPart();
    const outcome = ana.state.outcome(work);
    ana.handshake(before.restoredTo(2));
    const stored = ana.database.prepare('SELECT request_id, events FROM main.hf_outbox WHERE action_id = ?').get(work);
    expect({ ...stored }).toEqual({ request_id: own[0]?.requestId, events: own.length });
    ana.handshake(before);
    expect([ana.state.outcome(work), ana.state.counts().unsent, ana.take()]).toEqual([outcome, 0, []]);
    // And all of it is lost with the next restore.
    const ledger = before.restoredTo(2, 'another');
    ana.handshake(ledger);
    ana.adopt(ledger);
    ana.settle(ledger);
    expect(wholeAction(ledger, work)).toEqual(['n create', 'i delete', 'k update']);
  });

  test('[HL4] what others did and the ledger has kept is not done again, though they took it back since', () => {
    const { ana, ben, before, work } = doneInPart({ isSent: false });
    ben.commit([{ do: 'restore', entity: 'issue', id: 'i' }]);
    ben.settle(before);
    ana.settle(before);
    const ledger = before.restoredTo(5);
    expect(ana.handshake(ledger)).toMatchObject({ commonVersion: 5 });
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(work)?.state, ana.state.desk()]).toEqual(['ordered', []]);
    expect(wholeAction(ledger, work)).toEqual(['n create', 'k update']);
    expect(ledger.entity('issue', 'i')?.fields).toEqual({ title: 'Ben' });
  });

  test('[HL1 HL4 OB7] it is whole again, too, where what is left of it was not sent yet', () => {
    const { ana, before, work, own } = doneInPart({ isSent: false });
    expect([own, ana.state.counts().unsent]).toEqual([[], 1]);
    const ledger = before.restoredTo(2);
    ana.handshake(ledger);
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(work)?.state, ana.state.desk()]).toEqual(['ordered', []]);
    expect(wholeAction(ledger, work)).toEqual(['n create', 'i delete', 'k update']);
  });

  test('[HL1 HL4 OB7] it is whole again, too, where the answer to what is left of it never came', () => {
    const { ana, before, work } = doneInPart({ isSent: false });
    const onTop = ana.update('issue', 'k', { title: 'Ana again' });
    const sent = ana.take().map(({ requestId }) => requestId);
    ana.state.markUnknown(sent, { code: 'request-timeout' }, null);
    for (const requestId of sent) ana.owe(requestId);
    const ledger = before.restoredTo(2);
    ana.handshake(ledger);
    ana.adopt(ledger);
    // It was sent from a position that the ledger does not have: no answer to it can come any more.
    expect(ana.state.answeredSince(sent)).toEqual([{ requestId: sent[0], outcome: 'replaced' }]);
    ana.settle(ledger);
    expect([work, onTop].map((action) => ana.state.outcome(action)?.state)).toEqual(['ordered', 'ordered']);
    expect([wholeAction(ledger, work), wholeAction(ledger, onTop)]).toEqual([
      ['n create', 'i delete', 'k update'],
      ['k update'],
    ]);
    expect([ana.state.desk(), ledger.entity('issue', 'i')]).toEqual([[], undefined]);
  });

  test('[HL4 OB6] what a person put in the place of the rest takes along what others had done', () => {
    const { ana, ben, before } = doneInPart({ isSent: false });
    ben.update('issue', 'k', { title: 'Ben' });
    ben.settle(before);
    ana.settle(before);
    const [entry] = ana.state.desk();
    expect(ana.state.resolve({ ids: [entry?.id ?? ''], choice: 'mine' })).toMatchObject({ ok: true });
    ana.settle(before);
    const replacement = before.events.at(-1)?.actionId ?? '';
    // Devices name the versions 1, 2, 4, 8 below their head: then version 2 is one of them.
    for (let more = before.head; more < 10; more += 1) ben.create('issue', { title: 'more' });
    ben.settle(before);
    ana.pullAll(before);
    const ledger = before.restoredTo(2);
    expect(ana.handshake(ledger)).toMatchObject({ commonVersion: 2 });
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(replacement)?.state, ana.state.desk()]).toEqual(['ordered', []]);
    expect(wholeAction(ledger, replacement).sort()).toEqual(['i delete', 'k update', 'n create']);
  });

  test('[HL4 OB6] what a person decided for is offered with what others had done of it before the decision', () => {
    const before = new TinyLedger(nodeDigest);
    const [ana, ben] = [device(1), device(2, 'ben')];
    for (const one of [ana, ben]) one.bootstrap(before);
    for (const id of ['i', 'k']) ana.create('issue', { title: 'A' }, id);
    ana.settle(before);
    ben.settle(before);
    ana.commit([
      { do: 'delete', entity: 'issue', id: 'i' },
      { do: 'update', entity: 'issue', id: 'k', set: { title: 'Ana' } },
    ]);
    ben.update('issue', 'k', { title: 'Ben' });
    ben.delete('issue', 'i');
    ben.settle(before);
    ana.settle(before);
    ana.state.resolve({ ids: [ana.state.desk()[0]?.id ?? ''], choice: 'mine' });
    ben.create('issue', { title: 'more' });
    ben.settle(before);
    ana.settle(before);
    const replacement = before.events.find(({ version }) => version === 6)?.actionId ?? '';
    expect(wholeAction(before, replacement)).toEqual(['k update']);
    const ledger = before.restoredTo(2);
    expect(ana.handshake(ledger)).toMatchObject({ commonVersion: 2 });
    ana.adopt(ledger);
    ana.settle(ledger);
    expect([ana.state.desk(), ana.state.counts().unsent]).toEqual([[], 0]);
    expect(wholeAction(ledger, replacement)).toEqual(['i delete', 'k update']);
  });

  test('[HL4 LG4] an action that is whole again has its events in their order, and its chains as they were', () => {
    const made = fc.array(fc.record({ entity: fc.constantFrom('a', 'b', 'c'), isDone: fc.boolean() }), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(made, (events) => {
        const last = new Map<string, string>();
        const whole = events.map(({ entity }, at) => {
          const prior = last.get(entity) ?? (entity === 'a' ? undefined : `below ${entity}`);
          last.set(entity, `e${at}`);
          return { id: `e${at}`, entityType: 'issue', entityId: entity, ...(prior === undefined ? {} : { prior }) };
        }) as unknown as EventDraft[];
        // A rebase names what a dropped event named.
        const mapped = (prior: string | undefined): string | undefined => {
          const at = whole.findIndex(({ id }) => id === prior);
          return at >= 0 && events[at]?.isDone === true ? mapped(whole[at]?.prior) : prior;
        };
        const kept = whole.flatMap((draft, place) => (events[place]?.isDone ? [{ place, version: 1, draft }] : []));
        const rest = whole.flatMap(({ prior: old, ...draft }, at) => {
          const prior = mapped(old);
          return events[at]?.isDone ? [] : [{ ...draft, ...(prior === undefined ? {} : { prior }) }];
        });
        expect(wholeAgain(kept, rest)).toEqual(whole);
      }),
    );
  });

  test('[DG3] a position that is in the log takes the new epoch and goes on, asking again about what was accepted', () => {
    const ledger = new TinyLedger(nodeDigest);
    const ana = device(1);
    ana.bootstrap(ledger);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(ledger);
    const action = ana.update('issue', 'i', { title: 'B' });
    ana.push(ledger, { withEvents: false });
    const restored = ledger.restoredTo(1);
    expect(ana.handshake(restored).status).toBe('ok');
    ana.settle(restored);
    expect([ana.state.log('main')?.epoch, ana.state.outcome(action)?.state, restored.head]).toEqual([
      "e1'",
      'ordered',
      2,
    ]);
  });

  test('[HL1 OB3] an answer that promised a version which is somebody else’s by now confirms nothing', () => {
    const ledger = new TinyLedger(nodeDigest);
    const [ana, ben] = [device(1), device(2, 'ben')];
    ana.bootstrap(ledger);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(ledger);
    const action = ana.update('issue', 'i', { body: 'ana' });
    const operations = ana.take();
    const { replicaId, account } = ana.state.identity;
    const results = ledger.push(operations, { actor: account, replicaId });
    const restored = ledger.restoredTo(1);
    ben.bootstrap(restored);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(restored);
    expect(ana.handshake(restored).status).toBe('behind');
    ana.pullAll(restored);
    ana.state.write(() => ana.state.recordResults('main', results, ana.platform.clock.now()));
    expect([ana.state.outcome(action)?.state, ana.row('issue', 'i')?.['body']]).toEqual(['pending', 'ana']);
    ana.settle(restored);
    expect([ana.state.outcome(action), restored.entity('issue', 'i')?.fields]).toEqual([
      { state: 'ordered', log: 'main', version: 3 },
      { title: 'Ben', body: 'ana' },
    ]);
  });

  test('[I08] an answer that a socket has overtaken lowers no head of the ledger below what is applied here', () => {
    const ledger = new TinyLedger(nodeDigest);
    const ana = device(1);
    ana.bootstrap(ledger);
    ana.create('issue', { title: 'A' }, 'i');
    ana.settle(ledger);
    const answer = ledger.standing(ana.state.positions('main'), undefined);
    ana.update('issue', 'i', { title: 'B' });
    ana.settle(ledger);
    ana.state.recordStanding(answer);
    expect(ana.state.log('main')).toMatchObject({ head: 2, ledgerHead: 2 });
  });

  test('[RP1] a copy goes on under a new replica id with data, outbox and ids kept', () => {
    const { ana } = rewound();
    const action = ana.update('issue', 'i', { title: 'C' });
    const before = ana.state.identity.replicaId;
    ana.state.renewReplicaId();
    ana.reopen();
    expect(ana.state.identity.replicaId).not.toBe(before);
    expect([ana.row('issue', 'i')?.['title'], ana.take().map(({ requestId }) => requestId)]).toEqual(['C', [action]]);
  });
});
