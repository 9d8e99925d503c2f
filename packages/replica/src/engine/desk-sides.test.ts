import { counter, defineSchema, entity, LIMITS, ref, schemaData, text } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** What a person is shown as the other side: who wrote which field, and nothing that no one else touched. */

const schema = schemaData(
  defineSchema({
    issue: entity({ title: text(), body: text({ optional: true }), votes: counter() }),
    note: entity({ body: text(), issue: ref('issue') }),
  }),
);

let ledger: TinyLedger;
let devices: Device[];
let [ana, anaAtHome, ben, cleo]: Device[] = [];
const made = () => [ana, anaAtHome, ben, cleo] as [Device, Device, Device, Device];

beforeEach(() => {
  ledger = new TinyLedger(nodeDigest);
  devices = ['ana', 'ana', 'ben', 'cleo'].map((account, at) => new Device({ schema, seed: at + 1, account }));
  [ana, anaAtHome, ben, cleo] = devices;
  for (const device of devices) device.bootstrap(ledger);
  const [, , first] = made();
  first.create('issue', { title: 'by Ben' }, 'i');
  for (const device of [first, ...devices]) device.settle(ledger);
});
afterEach(() => {
  for (const device of devices) {
    expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    device.remove();
  }
});

const fieldsOf = (device: Device) => device.state.desk()[0]?.fields;

describe('who wrote it', () => {
  test('[MG5 OB6] what an edit that was kept over a deletion carries along stays with who wrote it', () => {
    const [work, home, other] = made();
    work.update('issue', 'i', { title: 'from work' });
    other.delete('issue', 'i');
    other.settle(ledger);
    home.update('issue', 'i', { body: 'from home' });
    home.settle(ledger);
    expect(ledger.entity('issue', 'i')?.fields).toMatchObject({ title: 'by Ben', body: 'from home' });
    work.settle(ledger);
    // "Theirs, by you" would be said of a title that Ben wrote before Ana saw it.
    expect(fieldsOf(work)).toMatchObject([
      { field: '*', by: 'ana' },
      { field: 'title', base: 'by Ben', mine: 'from work', theirs: 'by Ben', by: '' },
    ]);
  });

  test('[MG5 OB6] an edit that was kept and then clashes shows only what was edited as mine', () => {
    const [work, home, other] = made();
    work.update('issue', 'i', { body: 'from work' });
    other.delete('issue', 'i');
    other.settle(ledger);
    work.pullAll(ledger);
    work.push(ledger, { isAnswered: true });
    home.update('issue', 'i', { body: 'from home' });
    work.pullAll(ledger);
    home.settle(ledger);
    work.settle(ledger);
    const [entry] = work.state.desk();
    expect(entry?.kind).toBe('clash');
    expect(entry?.fields.map(({ field, by }) => [field, by])).toEqual([
      ['*', 'ana'],
      ['body', 'ana'],
    ]);
  });

  test('[F147 OB6] who changed another field last is not who wrote the one that moved', () => {
    const [work, , other, third] = made();
    work.update('issue', 'i', { title: 'Ana' });
    other.update('issue', 'i', { title: 'Ben' });
    other.settle(ledger);
    work.settle(ledger);
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', theirs: 'Ben', by: 'ben' }]);
    third.settle(ledger);
    third.update('issue', 'i', { title: 'Cleo' });
    third.settle(ledger);
    other.settle(ledger);
    other.update('issue', 'i', { body: 'Ben, later' });
    other.settle(ledger);
    work.settle(ledger);
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', mine: 'Ana', theirs: 'Cleo', by: 'cleo' }]);
  });
});

describe('where the state came whole', () => {
  /** Ben writes the title; Cleo, the last to write the entity, another field of it. */
  const written = (title: string) => {
    const [, , other, third] = made();
    other.settle(ledger);
    other.update('issue', 'i', { title });
    other.settle(ledger);
    third.settle(ledger);
    third.update('issue', 'i', { body: title });
    third.settle(ledger);
  };

  test('[OB6 IN2] a clash with what came without its events is said to be by nobody, not by whoever wrote the entity last', () => {
    const [work] = made();
    work.update('issue', 'i', { title: 'Ana' });
    written('Ben');
    work.fetch(ledger, 'repair');
    work.settle(ledger);
    expect(work.row('issue', 'i')).toMatchObject({ title: 'Ben', updatedBy: 'cleo' });
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', mine: 'Ana', theirs: 'Ben', by: '', at: '' }]);
  });

  test('[OB6 F147 IN2] a clash that waits says who wrote the other side until that moves without its events', () => {
    const [work] = made();
    work.update('issue', 'i', { title: 'Ana' });
    written('Ben');
    work.settle(ledger);
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', theirs: 'Ben', by: 'ben' }]);
    written('Ben, later');
    work.fetch(ledger, 'repair');
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', theirs: 'Ben, later', by: '', at: '' }]);
    // What comes after it comes as events again.
    const [, , , third] = made();
    third.update('issue', 'i', { title: 'Cleo' });
    third.settle(ledger);
    work.settle(ledger);
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', theirs: 'Cleo', by: 'cleo' }]);
  });
});

describe('put back', () => {
  /** Ben writes the title and puts it back as Ana saw it; she writes it, too, knowing of neither. */
  const putBack = (between: () => void = () => undefined) => {
    const [work, , other] = made();
    work.update('issue', 'i', { title: 'Ana' });
    other.update('issue', 'i', { title: 'Ben' });
    between();
    other.update('issue', 'i', { title: 'by Ben' });
    return { work, other };
  };

  // Why it is not let through: an undo is a write like any other (CM7), and nobody can tell it from a word for the old
  // value, which must not be lost in silence (MG3). And were Ana's first in the log, Ben's two would clash with it: what
  // comes first must not decide whether somebody is asked (MG2).
  test('[MG2 MG3] what others wrote and put back clashes, whichever side is first in the log', () => {
    const { work, other } = putBack();
    other.settle(ledger);
    work.settle(ledger);
    expect(work.state.desk()).toMatchObject([{ kind: 'clash', needs: 'answer' }]);
    expect(fieldsOf(work)).toMatchObject([
      { field: 'title', base: 'by Ben', mine: 'Ana', theirs: 'by Ben', by: 'ben' },
    ]);
  });

  test('[MG2 ST2] in the other order it is the one who wrote and put back who is asked, about both at once', () => {
    const { work, other } = putBack();
    work.settle(ledger);
    other.settle(ledger);
    expect(work.state.desk()).toEqual([]);
    expect(other.state.desk()).toMatchObject([{ kind: 'clash', needs: 'answer', held: 1 }]);
    expect(fieldsOf(other)).toMatchObject([{ field: 'title', mine: 'Ben', theirs: 'Ana', by: 'ana' }]);
  });

  test.each([
    ['mine', 'Ana', 1],
    ['theirs', 'by Ben', 0],
  ] as const)(
    '[OB6 ST3 F147] a clash that is put back while it waits is shown anew, and "%s" is one answer',
    (choice, title, written) => {
      const { work, other } = putBack(() => {
        const [work, , other] = made();
        other.settle(ledger);
        work.settle(ledger);
        expect(fieldsOf(work)).toMatchObject([{ field: 'title', base: 'by Ben', mine: 'Ana', theirs: 'Ben' }]);
      });
      const [shown] = work.state.desk();
      other.settle(ledger);
      work.settle(ledger);
      expect(fieldsOf(work)).toMatchObject([{ field: 'title', base: 'by Ben', mine: 'Ana', theirs: 'by Ben' }]);
      const ids = [shown?.id ?? ''];
      const stale = work.state.resolve({ ids, choice, revision: shown?.revision ?? 0 });
      expect(stale).toMatchObject({ ok: false, fault: { code: 'conflict-changed' } });
      const head = ledger.head;
      expect(work.state.resolve({ ids, choice, revision: (shown?.revision ?? 0) + 1 }).ok).toBe(true);
      work.settle(ledger);
      expect([work.state.desk(), ledger.head - head, ledger.entity('issue', 'i')?.fields['title']]).toEqual([
        [],
        written,
        title,
      ]);
    },
  );
});

describe('only what clashes', () => {
  test('[OB6 OB3] work that a person is asked about after 8 rebases shows the entity that others wrote, and no other', () => {
    const [work, , other] = made();
    const action = work.commit([
      { do: 'create', entity: 'note', id: 'n', fields: { body: 'mine alone', issue: 'i' } },
      { do: 'update', entity: 'issue', id: 'i', set: { body: 'Ana' } },
    ]);
    for (let round = 0; round <= LIMITS.automaticRebasesMax; round += 1) {
      const sent = work.take();
      other.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
      other.settle(ledger);
      const details = { type: 'issue', id: 'i', entityVersion: ledger.head, version: ledger.head };
      const refused = { status: 'refused', code: 'version-conflict', details } as const;
      work.state.recordResults(
        'main',
        sent.map(({ requestId }) => ({ requestId, ...refused })),
        0,
      );
      work.pullAll(ledger);
    }
    expect(work.state.desk()).toMatchObject([{ kind: 'clash', actionId: action, entity: { type: 'issue', id: 'i' } }]);
    expect(fieldsOf(work)).toEqual([
      { field: 'body', base: undefined, mine: 'Ana', theirs: undefined, by: '', at: '' },
    ]);
  });

  test('[OB6] what was refused gains no other side because somebody changed another field', () => {
    const [work, , other] = made();
    work.update('issue', 'i', { title: 'Ana' });
    const [sent] = work.take();
    const refused = { requestId: sent?.requestId ?? '', status: 'refused', code: 'not-allowed' } as const;
    work.state.recordResults('main', [refused], 0);
    const before = fieldsOf(work);
    other.update('issue', 'i', { body: 'Ben' });
    other.settle(ledger);
    work.settle(ledger);
    expect(before).toMatchObject([{ field: 'title', mine: 'Ana', theirs: undefined }]);
    expect(fieldsOf(work)).toEqual(before);
    other.update('issue', 'i', { title: 'Ben' });
    other.settle(ledger);
    work.settle(ledger);
    expect(fieldsOf(work)).toMatchObject([{ field: 'title', mine: 'Ana', theirs: 'Ben', by: 'ben' }]);
  });
});
