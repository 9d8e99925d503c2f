import { counter, defineSchema, type EventDraft, entity, LIMITS, oneOf, ref, schemaData, text } from '@holdfast/core';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    issue: entity({
      title: text(),
      body: text({ optional: true }),
      votes: counter(),
      status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    }),
    note: entity({ body: text(), issue: ref('issue') }),
  }),
);

const devices: Device[] = [];
function world() {
  const ledger = new TinyLedger(nodeDigest);
  const ana = new Device({ schema, seed: 1 });
  const ben = new Device({ schema, seed: 2, account: 'ben' });
  devices.push(ana, ben);
  for (const device of [ana, ben]) device.bootstrap(ledger);
  ana.create('issue', { title: 'A' }, 'i');
  ana.settle(ledger);
  ben.settle(ledger);
  return { ledger, ana, ben };
}
afterEach(() => {
  for (const device of devices.splice(0)) {
    expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    device.remove();
  }
});

/** Ana and Ben write one title; Ben's is first. Ana's batch is parked. */
function clash({ ledger, ana, ben }: ReturnType<typeof world>): string {
  const mine = ana.update('issue', 'i', { title: 'Ana' });
  ben.update('issue', 'i', { title: 'Ben' });
  ben.settle(ledger);
  ana.settle(ledger);
  return mine;
}

describe('sending', () => {
  test('[OB3] a retry sends the stored bytes under the same request id', () => {
    const { ledger, ana } = world();
    ana.update('issue', 'i', { title: 'B' });
    const [first] = ana.take();
    ana.state.markUnknown([first?.requestId ?? ''], { code: 'request-timeout' }, null);
    ana.reopen();
    expect(ana.take()).toEqual([first]);
    expect(ledger.head).toBe(1);
  });

  test('[OB2] a push takes whole operations in outbox order up to its bounds, and at least one', () => {
    const { ana } = world();
    for (const title of ['B', 'C', 'D']) ana.update('issue', 'i', { title });
    const taken = (eventsMax: number, bytesMax: number) =>
      ana.state.takePush({ log: 'main', eventsMax, bytesMax, nowMs: 0 });
    expect(taken(2, 1e6)).toMatchObject({ events: 2, more: true });
    expect(taken(512, 1)).toMatchObject({ events: 1, more: true });
    expect(taken(512, 1e6)).toMatchObject({ events: 3, more: false });
  });

  test('[OB4] waiting work is due at its stored instant, and at once when something says so', () => {
    const { ana } = world();
    ana.update('issue', 'i', { title: 'B' });
    const [sent] = ana.take();
    ana.state.markUnknown([sent?.requestId ?? ''], { code: 'ledger-unreachable' }, Number.MAX_SAFE_INTEGER);
    expect([ana.take().length, ana.state.nextRetryAtMs('main')]).toEqual([0, Number.MAX_SAFE_INTEGER]);
    ana.state.resetRetries();
    expect(ana.take()).toHaveLength(1);
  });

  test('[ST1] an accepted operation ahead of a gap stays in local state until its events arrive', () => {
    const { ledger, ana, ben } = world();
    ben.update('issue', 'i', { body: 'Ben' });
    ben.settle(ledger);
    const action = ana.update('issue', 'i', { title: 'B' });
    ana.push(ledger, { withEvents: false });
    expect([ana.row('issue', 'i')?.['title'], ana.state.outcome(action)?.state]).toEqual(['B', 'pending']);
    ana.pullAll(ledger);
    expect([ana.row('issue', 'i')?.['sync'], ana.state.outcome(action)]).toEqual([
      'synced',
      { state: 'ordered', log: 'main', version: 3 },
    ]);
  });

  test('[IN1] an acceptance at or below the head retires in the transaction that records it', () => {
    const { ledger, ana } = world();
    const action = ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ana.push(ledger, { isAnswered: false });
    ana.pullAll(ledger);
    expect([ana.row('issue', 'i')?.['votes'], ana.state.outcome(action)?.state]).toEqual([1, 'ordered']);
    expect(ana.state.counts().unsent).toBe(0);
  });

  test('[LG3] a batch that came to the log from a copy of this file is confirmed here, once', () => {
    const { ledger, ana, ben } = world();
    const action = ana.update('issue', 'i', { title: 'B' });
    const copy = new Device({ schema, seed: 9 });
    devices.push(copy);
    copy.bootstrap(ledger);
    expect(copy.state.unpack(ana.state.pack())).toMatchObject({ ok: true, value: { batches: 1, already: 0 } });
    copy.settle(ledger);
    ana.settle(ledger);
    ben.settle(ledger);
    expect([ledger.head, ana.state.outcome(action)?.state, ben.row('issue', 'i')?.['title']]).toEqual([
      2,
      'ordered',
      'B',
    ]);
    expect(copy.state.unpack(ana.state.pack())).toMatchObject({ ok: true, value: { batches: 0 } });
  });
});

describe('packs', () => {
  type Batch = Record<string, unknown> & { drafts: Record<string, unknown>[]; frame: Record<string, unknown> };
  type Packed = Record<string, unknown> & { batches: Batch[] };
  /** The pack with its batch and its body spoiled, and sealed again. */
  const spoiled = (pack: Uint8Array, spoil: (batch: Batch, body: Packed) => void): Uint8Array => {
    const body = JSON.parse(new TextDecoder().decode(pack).split('\n')[1] as string) as Packed;
    spoil(body.batches.at(-1) as Batch, body);
    const text = JSON.stringify(body);
    return new TextEncoder().encode(`${Buffer.from(nodeDigest.sha256(text)).toString('hex')}\n${text}\n`);
  };
  const set = (of: object, name: string, value: unknown) => void Object.assign(of, { [name]: value });

  const SPOILED: readonly (readonly [what: string, spoil: (batch: Batch, body: Packed) => void, code?: string])[] = [
    ['drafts that are no list', (batch) => set(batch, 'drafts', { 0: 'x' })],
    ['no drafts', (batch) => set(batch, 'drafts', [])],
    ['a draft that is no event', (batch) => set(batch, 'drafts', [null])],
    ['an event whose change nobody knows', (batch) => set(batch.drafts[0] as object, 'change', { op: 'guess' })],
    ['no action id', (batch) => set(batch, 'actionId', undefined)],
    ['a label that is a number', (batch) => set(batch, 'label', 7)],
    ['a time that is a text', (batch) => set(batch, 'createdAt', 'now')],
    ['no frame', (batch) => set(batch, 'frame', null)],
    ['needs that are no list', (batch) => set(batch.frame, 'needs', 'x')],
    ['requires that are no pairs', (batch) => set(batch.frame, 'requires', [['issue']])],
    ['a merge that nobody knows', (batch) => set(batch.frame, 'merge', 'guess')],
    ['a batch that is no object', (_, body) => set(body, 'batches', [...body.batches.slice(0, 1), 7])],
    ['no owner', (_, body) => set(body, 'owner', null), 'other-account'],
  ];

  test('[OB7] a sealed pack with what cannot be read is refused whole, and says why', () => {
    const { ledger, ana } = world();
    ana.update('issue', 'i', { title: 'B' });
    ana.create('note', { body: 'second', issue: 'i' }, 'n');
    const copy = new Device({ schema, seed: 9 });
    devices.push(copy);
    copy.bootstrap(ledger);
    const pack = ana.state.pack();
    for (const [what, spoil, code = 'malformed'] of SPOILED) {
      const taken = copy.state.unpack(spoiled(pack, spoil));
      expect(taken, what).toMatchObject({ ok: false, fault: { code } });
      const reason = taken.ok ? null : taken.fault.facts?.['reason'];
      if (code === 'malformed') expect(reason, what).toMatch(/^batch 1 of this pack cannot be read: ./);
      expect([copy.row('issue', 'i')?.['title'], copy.state.counts().unsent], what).toEqual(['A', 0]);
    }
    expect(copy.state.unpack(spoiled(pack, () => undefined))).toMatchObject({ ok: true, value: { batches: 2 } });
  });
});

describe('set aside', () => {
  /** Each draft, and what it stands on, as places in the outbox. */
  const standing = ({ database }: Device) => {
    const rows = database.prepare('SELECT drafts FROM main.hf_outbox ORDER BY seq').all();
    const drafts = rows.flatMap((row) => JSON.parse(row['drafts'] as string) as EventDraft[]);
    return drafts.map(({ prior }) => (prior === undefined ? null : drafts.findIndex(({ id }) => id === prior)));
  };

  test.each([
    [0, [null, 0, 1], { title: 'A', body: 'z', votes: 2 }],
    [1, [null, 0, 1], { title: 'B', body: 'z', votes: 1 }],
    [2, [null, 0, 1], { title: 'B', body: 'z', votes: 1 }],
    [3, [null, 0, 1], { title: 'B', votes: 2 }],
  ])(
    '[ST3 ST2 P7] of four edits of one thing number %i is given up: each other stands on the one before it',
    (at, stands, fields) => {
      const { ledger, ana } = world();
      const edits = [
        ana.update('issue', 'i', { title: 'B' }),
        ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]),
        ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]),
        ana.update('issue', 'i', { body: 'z' }),
      ];
      expect(ana.state.discard([edits[at] as string])).toMatchObject({ ok: true });
      expect(standing(ana)).toEqual(stands);
      ana.settle(ledger);
      expect([ana.state.counts().unsent, ledger.entity('issue', 'i')?.fields]).toEqual([0, fields]);
    },
  );

  test('[ST3 ST2] what waited for discarded work goes behind what was made since, and stands on that', () => {
    const { ledger, ana, ben } = world();
    const parked = ana.update('issue', 'i', { title: 'Ana' });
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    ana.update('issue', 'i', { body: 'since' });
    expect(ana.state.discard([parked])).toMatchObject({ ok: true });
    expect(standing(ana)).toEqual([null, 0]);
    ana.settle(ledger);
    expect(ledger.entity('issue', 'i')?.fields).toEqual({ title: 'Ben', body: 'since', votes: 1 });
  });

  test('[ST1] parked work leaves local state, whole on the desk, and its row says attention', () => {
    const { ledger, ana, ben } = world();
    const action = clash({ ledger, ana, ben });
    expect(ana.row('issue', 'i')).toMatchObject({ title: 'Ben', sync: 'attention' });
    expect(ana.state.desk()).toMatchObject([
      {
        kind: 'clash',
        needs: 'answer',
        actionId: action,
        entity: { type: 'issue', id: 'i' },
        fields: [{ field: 'title', base: 'A', mine: 'Ana', theirs: 'Ben', by: 'ben' }],
      },
    ]);
  });

  test('[ST2] what names parked work is held; what a person makes on what they see flows', () => {
    const { ledger, ana, ben } = world();
    ana.update('issue', 'i', { title: 'Ana' });
    const onTop = ana.update('issue', 'i', { body: 'on top of Ana' });
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    expect([ana.state.outcome(onTop)?.state, ana.state.counts()]).toMatchObject([
      'needs-attention',
      { held: 1, parked: 1, attention: 1 },
    ]);
    expect(ana.row('issue', 'i')?.['body']).toBeNull();
    const later = ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ana.settle(ledger);
    expect(ana.state.outcome(later)?.state).toBe('ordered');
  });

  test('[OB1] independent work flows past parked work', () => {
    const { ledger, ana, ben } = world();
    clash({ ledger, ana, ben });
    const other = ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }]);
    ana.settle(ledger);
    expect(ana.state.outcome(other)?.state).toBe('ordered');
  });

  test('[ST2] work that needs a refused creation is held with it', () => {
    const { ledger, ana } = world();
    const note = ana.commit([{ do: 'create', entity: 'note', id: 'n', fields: { body: 'x', issue: 'nobody' } }]);
    const edit = ana.update('note', 'n', { body: 'y' });
    ana.settle(ledger);
    expect(ana.state.desk()).toMatchObject([{ kind: 'missing-reference', actionId: note, held: 1 }]);
    expect([ana.row('note', 'n'), ana.state.outcome(edit)?.state]).toEqual([undefined, 'needs-attention']);
  });

  test('[ST2] what was made while its creation was on the way is held when that is refused', () => {
    const { ana } = world();
    ana.commit([{ do: 'create', entity: 'note', id: 'n', fields: { body: 'x', issue: 'nobody' } }]);
    const [sent] = ana.take();
    const edit = ana.update('note', 'n', { body: 'y' });
    const refused = { requestId: sent?.requestId ?? '', status: 'refused', code: 'missing-reference' } as const;
    ana.state.recordResults('main', [refused], 0);
    expect(ana.state.counts()).toMatchObject({ parked: 1, held: 1 });
    expect([ana.row('note', 'n'), ana.state.outcome(edit)?.state]).toEqual([undefined, 'needs-attention']);
    expect(ana.take()).toEqual([]);
  });

  test('[OB2 ST2] what builds on work that waits for its time is not sent before it', () => {
    const { ana } = world();
    ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J', body: '' } }]);
    const [first] = ana.take();
    ana.state.markUnknown([first?.requestId ?? ''], { code: 'ledger-unreachable' }, Number.MAX_SAFE_INTEGER);
    ana.update('issue', 'j', { title: 'on top of it' });
    const other = ana.commit([{ do: 'create', entity: 'issue', id: 'k', fields: { title: 'K', body: '' } }]);
    expect(ana.take().map(({ actionId }) => actionId)).toEqual([other]);
    ana.state.resetRetries();
    expect(ana.take().map(({ actionId }) => actionId)[0]).toBe(first?.actionId);
  });

  test('[OB2] what is asked about again keeps to the bytes of a push, too, and is one operation at least', () => {
    const { ana } = world();
    for (const id of ['a', 'b', 'c']) ana.create('issue', { title: 'x'.repeat(300) }, id);
    const only = ana.take().map(({ requestId }) => requestId);
    const named = (bytesMax: number) =>
      ana.state.takePush({ log: 'main', eventsMax: 512, bytesMax, nowMs: 0, only }).operations.length;
    expect(only).toHaveLength(3);
    expect([named(1_000_000), named(1_200), named(1)]).toEqual([3, 2, 1]);
  });

  test('[SC9 ST2] a reference to what is still on its way is sent with the action that it needs', () => {
    const { ana } = world();
    const issue = ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }]);
    ana.commit([{ do: 'create', entity: 'note', id: 'n', fields: { body: 'x', issue: 'j' } }]);
    expect(ana.take().map(({ needs }) => needs)).toEqual([undefined, [issue]]);
  });

  test('[IN1] a place in the log that was promised and came to somebody else: the same request asks again', () => {
    const { ledger, ana, ben } = world();
    ana.create('issue', { title: 'mine' }, 'j');
    const [sent] = ana.take();
    const promised = {
      requestId: sent?.requestId ?? '',
      status: 'accepted',
      firstVersion: ledger.head + 1,
      entityVersions: [1],
      recordedAt: '2026-01-01T00:00:00.000Z',
      actor: 'ana',
    } as const;
    ana.state.recordResults('main', [promised], 0);
    expect(ana.take()).toEqual([]);
    ben.create('issue', { title: 'his' }, 'k');
    ben.settle(ledger);
    ana.pullAll(ledger);
    expect(ana.take()).toEqual([sent]);
  });

  test('[OB3] what was merged again goes under a new request id, with its action id and its event ids', () => {
    const { ledger, ana, ben } = world();
    ana.update('issue', 'i', { body: 'Ana' });
    const [first] = ana.take();
    ben.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ben.settle(ledger);
    const details = { type: 'issue', id: 'i', entityVersion: ledger.head, version: ledger.head };
    const refused = {
      requestId: first?.requestId ?? '',
      status: 'refused',
      code: 'version-conflict',
      details,
    } as const;
    ana.state.recordResults('main', [refused], 0);
    ana.pullAll(ledger);
    const [again] = ana.take();
    expect([again?.actionId, again?.events.map(({ id }) => id)]).toEqual([
      first?.actionId,
      first?.events.map(({ id }) => id),
    ]);
    expect(again?.events[0]?.base).toBeGreaterThan(first?.events[0]?.base ?? 0);
    // A late copy of the first request must not be answered for the second.
    expect(again?.requestId).not.toBe(first?.requestId);
  });

  test('[OB3] after 8 automatic rebases a person is asked', () => {
    const { ledger, ana, ben } = world();
    const action = ana.update('issue', 'i', { body: 'Ana' });
    let rounds = 0;
    for (; rounds < 20 && ana.state.outcome(action)?.state === 'pending'; rounds += 1) {
      const sent = ana.take();
      ben.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
      ben.settle(ledger);
      const results = sent.map(({ requestId }) => ({
        requestId,
        status: 'refused' as const,
        code: 'version-conflict' as const,
        details: { type: 'issue', id: 'i', entityVersion: ledger.head, version: ledger.head },
      }));
      ana.state.recordResults('main', results, 0);
      ana.pullAll(ledger);
    }
    expect([rounds, ana.state.desk()[0]?.kind]).toEqual([LIMITS.automaticRebasesMax + 1, 'clash']);
  });

  test('[F147 OB6] when theirs moves on under an entry, its revision is another', () => {
    const { ledger, ana, ben } = world();
    clash({ ledger, ana, ben });
    const [shown] = ana.state.desk();
    ben.update('issue', 'i', { title: 'Ben again' });
    ben.settle(ledger);
    ana.pullAll(ledger);
    const [now] = ana.state.desk();
    expect(now?.fields[0]?.theirs).toBe('Ben again');
    expect(ana.state.resolve({ ids: [shown?.id ?? ''], choice: 'mine', revision: shown?.revision ?? 0 })).toMatchObject(
      { ok: false, fault: { code: 'conflict-changed' } },
    );
  });
});

describe('owed work', () => {
  test('[OB3] a wish to discard owed work waits, and takes it back by a commit if it was accepted', () => {
    const { ledger, ana } = world();
    const action = ana.update('issue', 'i', { title: 'B' });
    ana.push(ledger, { isAnswered: false });
    ana.owe(action);
    expect(ana.state.discard([action])).toMatchObject({ ok: true });
    expect(ana.state.outcome(action)?.state).toBe('pending');
    ana.push(ledger, { only: [action] });
    ana.settle(ledger);
    expect([ana.state.outcome(action)?.state, ledger.entity('issue', 'i')?.fields['title']]).toEqual(['ordered', 'A']);
  });

  test('[OB3] owed work that its chain wants rebased waits for its answer', () => {
    const { ledger, ana, ben } = world();
    const first = ana.update('issue', 'i', { title: 'Ana' });
    const second = ana.update('issue', 'i', { body: 'Ana' });
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    const sent = ana.take();
    ana.owe(second);
    ana.state.markUnknown([second], { code: 'request-timeout' }, null);
    const { replicaId } = ana.state.identity;
    const results = ledger.push(sent, { actor: 'ana', replicaId }).filter(({ requestId }) => requestId === first);
    ana.state.recordResults('main', results, 0);
    ana.pullAll(ledger);
    expect(ana.state.desk()).toEqual([]);
    ana.push(ledger, { only: [second] });
    expect(ana.state.desk()).toMatchObject([{ actionId: first, held: 1 }]);
  });

  test('[OB3] a wish about work that never left is carried out when it would be sent', () => {
    const { ledger, ana } = world();
    const action = ana.update('issue', 'i', { title: 'B' });
    ana.take();
    ana.state.discard([action]);
    ana.state.markUnknown([action], { code: 'ledger-unreachable' }, null);
    ana.settle(ledger);
    expect([ana.state.outcome(action)?.state, ledger.head, ana.row('issue', 'i')?.['title']]).toEqual([
      'discarded',
      1,
      'A',
    ]);
  });
});
