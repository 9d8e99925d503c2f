import {
  asSet,
  type Change,
  type Json,
  type JsonObject,
  type MergeRule,
  type PendingOperation,
  type Rebased,
} from '@holdfast/core';
import { expect } from 'vitest';
import { draftOf, ModelLedger, operationOf, rebaseOn } from '../packages/core/src/model-ledger.fixture.ts';
import { realData } from '../simulation/src/real-data.fixture.ts';

/**
 * The 1,216 concurrent edits of `beads_merges` (data/NOTICE.md), each as two devices would have made it, through fold, merge
 * and rebase: one device arrives first, the other is merged by the ledger, or judged by its own replica, or a person is
 * asked. Twice: with a naive schema, and modelled as docs/MODELLING.md advises.
 */
export type Side = Readonly<Record<string, Json>>;
export type Case =
  | { readonly kind: 'both_edited'; readonly base: Side; readonly ours: Side; readonly theirs: Side }
  | { readonly kind: 'both_created'; readonly ours: Side; readonly theirs: Side }
  | { readonly kind: 'edit_vs_delete'; readonly ours: 'edited' | 'deleted' };

export const CASES = realData<Case>('beads_merges');

// ── two schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** How an app models an issue: what each device's edit is, as changes per entity. */
export interface Model {
  readonly editedWhileDeleted: 'keep' | 'ask';
  /** The entities of a base version: the issue is `issue`. */
  readonly entitiesOf: (side: Side) => Map<string, JsonObject>;
  /** What a device did: changes per entity. */
  readonly changesOf: (base: Side, side: Side) => Map<string, Change>;
  /** Whether two devices that create an issue offline can meet on one id. */
  readonly isIdShared: boolean;
}

const present = (side: Side): JsonObject =>
  Object.fromEntries(Object.entries(side).filter(([, value]) => value !== null)) as JsonObject;

/** Each field is one value, everything asks, and ids are counted up by each device. */
export const NAIVE: Model = {
  editedWhileDeleted: 'ask',
  isIdShared: true,
  entitiesOf: (side) => new Map([['issue', present(side)]]),
  changesOf: (_, side) => new Map([['issue', updateOf(side, {})]]),
};

const SETS = ['labels', 'dependencies'];
/** "The newest word is simply right" (MODELLING): three enumerations. */
export const LAST: Readonly<Record<string, MergeRule>> = { status: 'last', priority: 'last', issue_type: 'last' };

/** Comments are entities, labels and dependencies sets, edits are kept, three enumerations take the last word. */
export const MODELLED: Model = {
  editedWhileDeleted: 'keep',
  isIdShared: false,
  entitiesOf: (side) => {
    const { comments, ...rest } = side;
    const issue = Object.entries(present(rest)).map(([field, value]) => [
      field,
      SETS.includes(field) ? asSet(value as Json[]) : value,
    ]);
    return new Map([['issue', Object.fromEntries(issue) as JsonObject], ...commentsOf(comments)]);
  },
  changesOf: (base, side) => {
    const { comments, ...rest } = side;
    const changes = new Map<string, Change>();
    if (Object.keys(rest).length > 0) changes.set('issue', modelledUpdate(base, rest));
    if (comments === undefined) return changes;
    const before = commentsOf(base['comments']);
    const after = commentsOf(comments);
    for (const [id, fields] of after) if (!before.has(id)) changes.set(id, { op: 'create', fields });
    for (const id of before.keys()) if (!after.has(id)) changes.set(id, { op: 'delete' });
    return changes;
  },
};

/**
 * A comment has no id in the data, and its time was rewritten by every export; author and text name it. Its time would be
 * the engine's `createdAt`, not a field.
 */
export function commentsOf(comments: Json | undefined): Map<string, JsonObject> {
  const entities = new Map<string, JsonObject>();
  for (const { author, text } of (comments ?? []) as { author: string; text: string }[]) {
    const name = `${author}: ${text}`;
    let count = 1;
    while (entities.has(`${name} (${count})`)) count += 1;
    entities.set(`${name} (${count})`, { author, text });
  }
  return entities;
}

function updateOf(side: Side, rules: Readonly<Record<string, MergeRule>>): Change {
  const unset = Object.keys(side).filter((field) => side[field] === null);
  return { op: 'update', set: present(side), unset, rules };
}

function modelledUpdate(base: Side, side: Side): Change {
  const add: Record<string, Json[]> = {};
  const remove: Record<string, Json[]> = {};
  const plain: Record<string, Json> = {};
  for (const [field, value] of Object.entries(side)) {
    if (!SETS.includes(field)) {
      plain[field] = value;
      continue;
    }
    const [before, after] = [base[field], value].map((set) => (set ?? []) as Json[]) as [Json[], Json[]];
    add[field] = after.filter((element) => !before.includes(element));
    remove[field] = before.filter((element) => !after.includes(element));
  }
  return { ...(updateOf(plain, LAST) as Extract<Change, { op: 'update' }>), add, remove };
}

// ── two devices ─────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Merged {
  readonly isAsked: boolean;
  /** Per entity: what it was, what each device did, and what came out. */
  readonly entities: readonly {
    readonly name: string;
    readonly before: JsonObject | undefined;
    readonly first: Change | undefined;
    readonly second: Change | undefined;
    readonly after: JsonObject | undefined;
  }[];
}

/** The first device's changes are accepted; the second's are merged, or judged, or a person is asked. */
function merge(
  model: Model,
  before: Map<string, JsonObject>,
  [first, second]: readonly [Map<string, Change>, Map<string, Change>],
): Merged {
  let isAsked = false;
  const ids = new Set([...before.keys(), ...first.keys(), ...second.keys()]);
  const entities = [...ids].map((id) => {
    const ledger = new ModelLedger();
    const fields = before.get(id);
    if (fields !== undefined) ledger.push(operationOf(draftOf('base', { op: 'create', fields }, 0)));
    const base = ledger.events.length;
    for (const [name, changes] of Object.entries({ first, second })) {
      const change = changes.get(id);
      if (change === undefined) continue;
      const outcome = send(ledger, operationOf(draftOf(name, change, base)), model);
      if (outcome === 'asked') isAsked = true;
    }
    return { name: id, before: fields, first: first.get(id), second: second.get(id), after: ledger.state?.fields };
  });
  return { isAsked, entities };
}

function send(ledger: ModelLedger, operation: PendingOperation, model: Model): 'merged' | 'asked' {
  const answer = ledger.push(operation);
  if (answer.code === 'accepted') return 'merged';
  expect(answer.code).toBe('version-conflict');
  const [judged] = rebaseOn(ledger, [operation], { editedWhileDeleted: () => model.editedWhileDeleted }) as [Rebased];
  if (judged.outcome === 'parked') return 'asked';
  if (judged.outcome === 'rebased') expect(ledger.push({ ...operation, events: judged.events }).code).toBe('accepted');
  else expect(judged.outcome).toBe('nothing-left');
  return 'merged';
}

export const BEFORE_DELETION = { status: 'open', title: 'before' };
export const EDIT: Change = { op: 'update', set: { title: 'edited' } };

/** The data does not say what was edited or how; any edit stands for it. */
export function run(model: Model, data: Case, order: 'ours first' | 'theirs first'): Merged {
  const inOrder = <T>(ours: T, theirs: T): readonly [T, T] =>
    order === 'ours first' ? [ours, theirs] : [theirs, ours];
  if (data.kind === 'edit_vs_delete') {
    const edit = new Map([['issue', EDIT]]);
    const deletion = new Map<string, Change>([['issue', { op: 'delete' }]]);
    const sides = data.ours === 'edited' ? inOrder(edit, deletion) : inOrder(deletion, edit);
    return merge(model, new Map([['issue', BEFORE_DELETION]]), sides);
  }
  if (data.kind === 'both_created') {
    const created = (side: Side, name: string): Map<string, Change> =>
      new Map(
        [...model.entitiesOf(side)].map(([id, fields]) => [
          model.isIdShared ? id : `${name} ${id}`,
          { op: 'create', fields } as const,
        ]),
      );
    return merge(model, new Map(), inOrder(created(data.ours, 'ours'), created(data.theirs, 'theirs')));
  }
  const { base, ours, theirs } = data;
  return merge(model, model.entitiesOf(base), inOrder(model.changesOf(base, ours), model.changesOf(base, theirs)));
}
