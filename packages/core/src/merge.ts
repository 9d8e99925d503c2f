import { canonical } from './canonical.ts';
import type { Change, MergeRule } from './events.ts';
import type { Json } from './json.ts';
import { sameValue } from './order.ts';

/**
 * What one of my changes is against everything that happened to its entity since I looked (4.4).
 *
 * - `apply`: both hold; append it.
 * - `same`: the entity is as I want it already; log it, without effect on the fields.
 * - `clash`: a person must say. `fields` is `'entity'` where the two are about the whole entity; `theirs` are the
 *   indices of the changes that clash.
 */
export type Judgement =
  | { readonly verdict: 'apply' | 'same' }
  | { readonly verdict: 'clash'; readonly fields: readonly string[] | 'entity'; readonly theirs: readonly number[] };

export function judgeEvent(mine: Change, theirs: readonly Change[]): Judgement {
  if (isEqualToOneOf(mine, theirs)) return { verdict: 'same' };
  const fields = new Set<string>();
  const clashing: number[] = [];
  let whole = false;
  theirs.forEach((other, at) => {
    const clash = clashOf(mine, other);
    if (clash === null) return;
    clashing.push(at);
    if (clash === 'entity') whole = true;
    else for (const field of clash) fields.add(field);
  });
  if (clashing.length === 0) return { verdict: 'apply' };
  return { verdict: 'clash', fields: whole ? 'entity' : [...fields], theirs: clashing };
}

/**
 * The entity is already as mine wants it: it was deleted and mine deletes, or an equal create or restore stands there.
 * Equal creates count as one, so what followed theirs is not held against mine. Only the newest deletion or creation
 * counts: what was made equal and then deleted is not there.
 */
function isEqualToOneOf(mine: Change, theirs: readonly Change[]): boolean {
  for (let at = theirs.length - 1; at >= 0; at -= 1) {
    const other = theirs[at] as Change;
    if (mine.op === 'delete')
      return other.op === 'delete' && theirs.slice(0, at).every((before) => before.op !== 'restore');
    if (other.op === 'delete') return false;
    if ((mine.op === 'create' || mine.op === 'restore') && other.op === mine.op)
      return sameValue(other.fields, mine.fields);
  }
  return false;
}

type Clash = readonly string[] | 'entity' | null;

/** Two changes that cannot both hold: the fields about which they disagree, or the entity. */
export function clashOf(mine: Change, theirs: Change): Clash {
  if (isUpdating(mine) && isUpdating(theirs)) return clashingFields(mine, theirs);
  switch (mine.op) {
    case 'update':
      // Their create is where mine began, or equal to where mine began.
      return theirs.op === 'create' ? null : 'entity';
    case 'put':
      // Two makers of one keyed entity merge by field; a create is a put without rules.
      return theirs.op === 'create' ? clashingFields(mine, { op: 'put', set: theirs.fields }) : 'entity';
    case 'create':
      return theirs.op === 'put' ? clashingFields({ op: 'put', set: mine.fields }, theirs) : 'entity';
    case 'delete':
      return theirs.op === 'delete' ? null : 'entity';
    case 'restore':
      return 'entity';
  }
}

type Updating = Extract<Change, { op: 'update' | 'put' }>;
const isUpdating = (change: Change): change is Updating => change.op === 'update' || change.op === 'put';

function clashingFields(mine: Updating, theirs: Updating): Clash {
  const clashing = [...fieldsOf(mine)].filter((field) => isClash(mine, theirs, field));
  return clashing.length === 0 ? null : clashing;
}

/** Every field that a change touches. */
export function fieldsOf(change: Change): ReadonlySet<string> {
  switch (change.op) {
    case 'update':
      return new Set([
        ...Object.keys(change.set ?? {}),
        ...(change.unset ?? []),
        ...Object.keys(change.inc ?? {}),
        ...Object.keys(change.add ?? {}),
        ...Object.keys(change.remove ?? {}),
      ]);
    case 'put':
      return new Set(Object.keys(change.set));
    case 'create':
    case 'restore':
      return new Set(Object.keys(change.fields));
    case 'delete':
      return new Set();
  }
}

/** What a change does to one field: one column, and one row, of the table in 4.4. */
type FieldAct =
  | { readonly act: 'set'; readonly value: Json; readonly rule: MergeRule | null }
  | { readonly act: 'unset'; readonly rule: MergeRule | null }
  | { readonly act: 'inc' }
  | { readonly act: 'elements'; readonly add: ReadonlySet<string>; readonly remove: ReadonlySet<string> };

const KNOWN_RULES: ReadonlySet<string> = new Set<MergeRule>(['last', 'max', 'min']);

function ruleOf(change: Updating, field: string): MergeRule | null {
  const rule = change.rules !== undefined && Object.hasOwn(change.rules, field) ? change.rules[field] : undefined;
  return rule !== undefined && KNOWN_RULES.has(rule) ? rule : null;
}

function actOn(change: Updating, field: string): FieldAct | null {
  const { set } = change;
  if (set !== undefined && Object.hasOwn(set, field))
    return { act: 'set', value: set[field] as Json, rule: ruleOf(change, field) };
  if (change.op === 'put') return null;
  if (change.unset?.includes(field)) return { act: 'unset', rule: ruleOf(change, field) };
  if (change.inc !== undefined && Object.hasOwn(change.inc, field)) return { act: 'inc' };
  const add = elementsOf(change.add, field);
  const remove = elementsOf(change.remove, field);
  return add.size + remove.size === 0 ? null : { act: 'elements', add, remove };
}

const elementsOf = (
  byField: Readonly<Record<string, readonly Json[]>> | undefined,
  field: string,
): ReadonlySet<string> =>
  new Set(
    byField !== undefined && Object.hasOwn(byField, field) ? (byField[field] as readonly Json[]).map(canonical) : [],
  );

function isClash(mineChange: Updating, theirsChange: Updating, field: string): boolean {
  const mine = actOn(mineChange, field);
  const theirs = actOn(theirsChange, field);
  if (mine === null || theirs === null) return false;
  if (mine.act === 'inc' && theirs.act === 'inc') return false;
  if (mine.act === 'elements' && theirs.act === 'elements')
    return overlaps(mine.add, theirs.remove) || overlaps(mine.remove, theirs.add);
  if (mine.act === 'unset' && theirs.act === 'unset') return false;
  const isSetOrUnset = (act: FieldAct) => act.act === 'set' || act.act === 'unset';
  if (!isSetOrUnset(mine) || !isSetOrUnset(theirs)) return true;
  if (mine.act === 'set' && theirs.act === 'set' && sameValue(mine.value, theirs.value)) return false;
  const rule = 'rule' in mine ? mine.rule : null;
  return rule === null || !('rule' in theirs) || theirs.rule !== rule;
}

const overlaps = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => {
  for (const element of a) if (b.has(element)) return true;
  return false;
};
