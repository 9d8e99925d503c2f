import { defineSchema, entity, text } from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { rankBetween } from '../packages/core/src/rank.ts';
import { realJson } from '../simulation/src/real-data.fixture.ts';

/** Real writing, keystroke by keystroke, and the text that it made, which says itself whether all of it arrived. */
type Patch = readonly [position: number, deleted: number, inserted: string];

// ── one author, two devices ─────────────────────────────────────────────────────────────────────────────────────────

const schema = defineSchema({ paper: entity({ body: text() }) });
type Device = WorldDevice<typeof schema>;

/** The text after every so many keystrokes, as an editor saves it. */
function* savesOf(txns: readonly { readonly patches: readonly Patch[] }[], every: number): Generator<string> {
  // Two stacks around the cursor, which moves little: pasting together a long text for each key would take minutes.
  const before: string[] = [];
  const after: string[] = [];
  const move = (from: string[], to: string[], count: number) => {
    for (let moved = 0; moved < count; moved += 1) to.push(from.pop() as string);
  };
  const whole = () => before.join('') + after.toReversed().join('');
  for (const [at, { patches }] of txns.entries()) {
    for (const [position, deleted, inserted] of patches) {
      move(before, after, before.length - position);
      move(after, before, position - before.length);
      after.length -= deleted;
      before.push(...inserted);
    }
    if (at % every === every - 1) yield whole();
  }
  yield whole();
}

interface Paper {
  readonly endContent: string;
  readonly txns: readonly { readonly patches: readonly Patch[] }[];
}
const PAPER = realJson<Paper>('trace_automerge-paper');
const KEYS_PER_SAVE = 5_000;
const SAVES_PER_DEVICE = 4;

test.skipIf(PAPER === null)(
  '[I11 I12 I17] a paper of 259,778 keystrokes, saved on two devices in turn, is on each of them and on a reader’s what its author ended with',
  async () => {
    const { txns, endContent } = PAPER as Paper;
    expect(txns).toHaveLength(259_778);
    await using world = await createWorld({ schema, seed: 21 });
    const authors = [
      await world.device('desktop', { account: 'ana' }),
      await world.device('laptop', { account: 'ana' }),
    ];
    const reader = await world.device('reader');
    const id = await (authors[0] as Device).replica.commit((tx) => tx.paper.create({ body: '' }));
    let [saves, at, last] = [0, 0, ''];
    for (const body of savesOf(txns, KEYS_PER_SAVE)) {
      // Who sits down at the other device waits until it has everything; between, each save travels when it may.
      if (saves % SAVES_PER_DEVICE === 0) await world.settle();
      at = Math.floor(saves / SAVES_PER_DEVICE) % authors.length;
      if (saves % 5 === 0) reader.offline();
      if (saves % 5 === 3) reader.online();
      if (body !== last) await (authors[at] as Device).replica.commit((tx) => tx.paper.update(id, { body }));
      last = body;
      saves += 1;
    }
    reader.online();
    await world.settle();
    await world.converged();
    const report = await world.ledger.current.engine.verify({ workspace: 'world', log: 'main' });
    console.log(`${saves} saves, ${report?.events} events, a paper of ${last.length} characters`);
    // Every save is in the log, none twice.
    expect([report?.problems, report?.events]).toEqual([[], saves + 1]);
    for (const { replica } of [...authors, reader]) {
      const row = await replica.first((db) => db.selectFrom('paper').select('body'));
      expect(row?.body === endContent).toBe(true);
      expect(await replica.desk.list()).toEqual([]);
    }
  },
);

// ── two people at once ──────────────────────────────────────────────────────────────────────────────────────────────

interface Chat {
  readonly endContent: string;
  readonly numAgents: number;
  readonly txns: readonly {
    /** The version that its author saw: these and all before them. */
    readonly parents: readonly number[];
    readonly agent: number;
    readonly patches: readonly Patch[];
  }[];
}
interface Letter {
  readonly rank: string;
  /** Of the transaction that wrote it. */
  readonly by: number;
  readonly text: string;
}
type Edit = { readonly insert: Letter } | { readonly remove: Letter };
const CHAT = realJson<Chat>('trace_friendsforever');

/** Where it stands, or would stand, among letters in the order of their ranks. */
function placeOf(letters: readonly Letter[], { rank: key, by }: Letter): number {
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const one = letters[middle] as Letter;
    if (one.rank < key || (one.rank === key && one.by < by)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function apply({ letters, all }: Desk, edit: Edit): void {
  const letter = 'insert' in edit ? edit.insert : edit.remove;
  const at = placeOf(letters, letter);
  if ('insert' in edit) {
    letters.splice(at, 0, letter);
    all.splice(placeOf(all, letter), 0, letter);
  }
  // Both may have removed it.
  else if (letters[at] === letter) letters.splice(at, 1);
}

/** What one person has on the screen, and knows of the other. */
interface Desk {
  readonly letters: Letter[];
  /** Those that were removed, too: whoever wrote beside one had it for a neighbour. */
  readonly all: Letter[];
  readonly seen: Set<number>;
}

test.skipIf(CHAT === null)(
  '[SC10] two people who write one text at once, each letter placed by a rank between its neighbours, removed ones too, end with the text that they ended with',
  () => {
    const { txns, endContent, numAgents } = CHAT as Chat;
    expect(txns).toHaveLength(26_078);
    const edits: Edit[][] = [];
    const desks: readonly Desk[] = Array.from({ length: numAgents }, () => ({ letters: [], all: [], seen: new Set() }));
    let dice = 7;
    const random = {
      unit: () => {
        dice = (Math.imul(dice, 1_664_525) + 1_013_904_223) >>> 0;
        return dice / 4_294_967_296;
      },
    };
    /** Takes what is new of these versions and of all before them, in an order that has causes first. */
    const take = (desk: Desk, versions: readonly number[]): number => {
      const { seen } = desk;
      const missing: number[] = [];
      const open = [...versions];
      for (let one = open.pop(); one !== undefined; one = open.pop()) {
        if (seen.has(one)) continue;
        seen.add(one);
        missing.push(one);
        open.push(...(txns[one]?.parents ?? []));
      }
      for (const one of missing.sort((a, b) => a - b)) for (const edit of edits[one] ?? []) apply(desk, edit);
      return missing.length;
    };
    let [met, longest] = [0, 0];
    for (const [by, { parents, agent, patches }] of txns.entries()) {
      const desk = desks[agent] as Desk;
      if (take(desk, parents) > 0) met += 1;
      const own: Edit[] = [];
      for (const [position, deleted, inserted] of patches) {
        for (const letter of desk.letters.slice(position, position + deleted)) own.push({ remove: letter });
        const after = desk.letters[position - 1];
        const before = desk.all[after === undefined ? 0 : placeOf(desk.all, after) + 1];
        let low = after?.rank ?? null;
        for (const letter of inserted) {
          low = rankBetween(low, before?.rank ?? null, random as never);
          longest = Math.max(longest, low.length);
          own.push({ insert: { rank: low, by, text: letter } });
        }
      }
      for (const edit of own) apply(desk, edit);
      desk.seen.add(by);
      edits.push(own);
    }
    console.log(`${txns.length} transactions, ${met} of which met the other’s; the longest rank has ${longest} digits`);
    expect(met).toBeGreaterThan(2_000);
    for (const desk of desks) {
      take(desk, [...txns.keys()]);
      expect(desk.letters.map((letter) => letter.text).join('') === endContent).toBe(true);
    }
  },
);
