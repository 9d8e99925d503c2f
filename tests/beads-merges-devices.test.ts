import { type Change, defineSchema, entity, integer, type JsonObject, ref, setOf, text } from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { describe, expect, test } from 'vitest';
import { BEFORE_DELETION, CASES, type Case, EDIT, MODELLED, run, type Side } from './beads-merges.fixture.ts';

/**
 * The 1,216 concurrent edits of `beads_merges` once more, end to end: a schema as docs/MODELLING.md advises, two devices
 * that do not see each other, and the real ledger. What comes out is compared with the model, case by case.
 */
const plain = () => text({ optional: true });
const schema = defineSchema({
  bead: entity({
    title: plain(),
    description: plain(),
    status: text({ optional: true, onClash: 'last' }),
    priority: integer({ optional: true, onClash: 'last' }),
    issueType: text({ optional: true, onClash: 'last' }),
    assignee: plain(),
    labels: setOf(text()),
    dependencies: setOf(text()),
    acceptanceCriteria: plain(),
    closeReason: plain(),
    maker: plain(),
    deleteReason: plain(),
    deletedAt: plain(),
    deletedBy: plain(),
    design: plain(),
    duplicateOf: plain(),
    externalRef: plain(),
    notes: plain(),
    repliesTo: plain(),
    supersededBy: plain(),
  }),
  comment: entity({ bead: ref('bead', { onDelete: 'delete-too' }), author: text(), text: text() }),
});
type Device = WorldDevice<typeof schema>;
type Tx = Parameters<Parameters<Device['replica']['commit']>[0]>[0];
/** `issue_type` → `issueType`: a schema's names have no underscores, and every row has its own `createdBy`. */
const named = <T>(fields: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace('created_by', 'maker').replace(/_(.)/g, (_, letter) => letter.toUpperCase()),
      value,
    ]),
  );
type Who = 'ours' | 'theirs';

/** The names of the model's entities, as ids: `issue` is the bead of the case, every other name a comment of it. */
class Names {
  readonly #ids = new Map<string, string>();
  readonly #at: number;
  constructor(at: number) {
    this.#at = at;
  }
  /** The model's name for what the two devices create each by itself begins with whose it is. */
  idOf(name: string): string {
    if (name === 'issue') return `bead-${this.#at}`;
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = `${name.endsWith(' issue') ? 'bead' : 'comment'}-${this.#at}-${this.#ids.size}`;
    this.#ids.set(name, id);
    return id;
  }
}

const isBead = (name: string): boolean => name === 'issue' || name === 'ours issue' || name === 'theirs issue';

function create(tx: Tx, names: Names, entities: ReadonlyMap<string, JsonObject>, prefix = ''): void {
  const bead = names.idOf(`${prefix}issue`);
  for (const [name, fields] of entities) {
    const id = names.idOf(prefix + name) as never;
    if (isBead(prefix + name)) tx.bead.create({ ...named(fields), id } as never);
    else tx.comment.create({ ...fields, id, bead } as never);
  }
}

/** What one side did, as an app would commit it: in one commit. */
function act(tx: Tx, names: Names, data: Case, who: Who): void {
  const id = names.idOf('issue') as never;
  if (data.kind === 'edit_vs_delete') {
    if (data[who as 'ours'] === 'deleted') tx.bead.delete(id);
    else tx.bead.update(id, (EDIT as { readonly set: object }).set);
  } else if (data.kind === 'both_created') create(tx, names, MODELLED.entitiesOf(data[who]), `${who} `);
  else
    for (const [name, change] of MODELLED.changesOf(data.base, data[who])) {
      const of = names.idOf(name) as never;
      if (change.op === 'create') tx.comment.create({ ...change.fields, id: of, bead: id } as never);
      else if (change.op === 'delete') tx.comment.delete(of);
      else if (change.op === 'update') tx.bead.update(of, patchOf(change));
    }
}

function patchOf({ set, unset = [], add = {}, remove = {} }: Extract<Change, { op: 'update' }>): never {
  const sets = Object.keys(add).map((field) => [field, { add: add[field], remove: remove[field] ?? [] }]);
  return named({ ...set, ...Object.fromEntries([...unset.map((field) => [field, null]), ...sets]) }) as never;
}

/** Fields in one shape, of a row and of the model: what is not set is not there, sets have no order. */
const shape = (fields: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    names
      .map((name) => [name, fields[name]] as const)
      .filter(([, value]) => value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0))
      .map(([name, value]) => [name, Array.isArray(value) ? value.toSorted() : value]),
  );

const BEAD = Object.keys(schema.bead.fields);
const COMMENT = ['author', 'text'];

async function shownBy({ replica }: Device): Promise<ReadonlyMap<string, Record<string, unknown>>> {
  const beads = await replica.query((db) => db.selectFrom('bead').selectAll());
  const comments = await replica.query((db) => db.selectFrom('comment').selectAll());
  return new Map([
    ...beads.map((row) => [row.id as string, shape(row, BEAD)] as const),
    ...comments.map((row) => [row.id as string, shape(row, COMMENT)] as const),
  ]);
}

describe.skipIf(CASES === null)('1,216 real concurrent edits on two devices', () => {
  const cases = CASES ?? [];

  test('[MG1 MG2 MG5 I12 I13] ask a person in the cases in which the model does, and come out as it says in all others', {
    timeout: 300_000,
  }, async () => {
    expect(cases).toHaveLength(1_216);
    await using world = await createWorld({ schema, seed: 31 });
    const devices = { ours: await world.device('ours'), theirs: await world.device('theirs') };
    await world.settle();
    const names = cases.map((_, at) => new Names(at));
    for (const [at, data] of cases.entries()) {
      if (data.kind === 'both_created') continue;
      const base: Side = data.kind === 'both_edited' ? data.base : BEFORE_DELETION;
      await devices.ours.replica.commit((tx) => create(tx, names[at] as Names, MODELLED.entitiesOf(base)), {
        undo: false,
      });
    }
    await world.settle();

    const caseOf = new Map<string, number>();
    for (const [who, device] of Object.entries(devices) as [Who, Device][]) {
      device.offline();
      for (const [at, data] of cases.entries()) {
        const write = device.replica.commit((tx) => act(tx, names[at] as Names, data, who), { undo: false });
        await write;
        caseOf.set(write.id, at);
      }
    }
    // In the order of the model: ours is there, then theirs comes.
    devices.ours.online();
    await world.settle();
    devices.theirs.online();
    await world.settle();
    expect(await world.converged()).toBe(true);

    const merged = cases.map((data) => run(MODELLED, data, 'ours first'));
    const asked = new Set<number>();
    for (const { replica } of Object.values(devices))
      for (const { needs, write } of await replica.desk.list())
        if (needs === 'answer') asked.add(caseOf.get(write) as number);
    const edits = cases.filter(({ kind }) => kind !== 'both_created').length;
    console.log(`beads-merges on devices: a person is asked in ${asked.size} of ${edits} edits`);
    expect([...asked].sort((a, b) => a - b)).toEqual([...merged.keys()].filter((at) => merged[at]?.isAsked === true));
    expect(asked.size).toBeGreaterThan(0);

    const shown = await shownBy(devices.ours);
    expect(await shownBy(devices.theirs)).toEqual(shown);
    for (const [at, { isAsked, entities }] of merged.entries())
      if (!isAsked)
        for (const { name, after } of entities) {
          const row = shown.get((names[at] as Names).idOf(name));
          const said = after === undefined ? undefined : shape(named(after), isBead(name) ? BEAD : COMMENT);
          expect([at, name, row]).toEqual([at, name, said]);
        }
  });
});
