import { canonical } from './canonical.ts';
import type { Change, MergeRule } from './events.ts';
import type { Json } from './json.ts';

/**
 * The two clash tables of 4.4, and nothing else: whether a change holds beside what others did to the same entity
 * without its author knowing. Pure, needs no history, the same at the ledger and on every replica (MG1).
 */
export type Judgement =
  /** It holds beside all of theirs. */
  | { readonly verdict: 'apply' }
  /** They did exactly this: accepted and logged, without effect on the fields. */
  | { readonly verdict: 'same' }
  | {
      readonly verdict: 'clash';
      /** The fields that clash; `entity` when the clash is about the whole entity. */
      readonly fields: readonly string[] | 'entity';
      /** Which of theirs it clashes with, by place in the list. */
      readonly theirs: readonly number[];
    };

/** A change whose bytes were erased (DG1) is null: nobody can say what it did, so it clashes. */
export type TheirChange = Change | null;

/**
 * Judges one change against all of theirs, in any order. `theirs` come from `theirsSince`, which leaves out one's own and
 * what counts as one with it.
 */
export function judgeEvent(mine: Change, theirs: readonly TheirChange[]): Judgement {
  return judgeAgainst(mine, theirsIndex(theirs));
}

// ── the tables ──────────────────────────────────────────────────────────────────────────────────────────────────────

type Op = Change['op'];
type EntityCell =
  /** Look at the fields. */
  | 'by-field'
  | 'clash'
  /** Theirs did it already. */
  | 'same'
  /** `same` if both carry equal fields, else `clash`. */
  | 'equal';

/**
 * Whole entity: mine by theirs. `put` is an update here. An update or delete meets a create of theirs only after a `put`
 * of its own author, since equal creates count as one. A create that meets a `put` clashes as it is, because fold, which
 * sees no history, could not tell it from an equal create; its author's replica writes it as `put` (rebase.ts), which
 * merges by field.
 */
export const ENTITY_TABLE: Readonly<Record<Op, Readonly<Record<Op, EntityCell>>>> = {
  update: { update: 'by-field', put: 'by-field', delete: 'clash', restore: 'clash', create: 'by-field' },
  put: { update: 'by-field', put: 'by-field', delete: 'clash', restore: 'clash', create: 'by-field' },
  delete: { update: 'clash', put: 'clash', delete: 'same', restore: 'clash', create: 'clash' },
  restore: { update: 'clash', put: 'clash', delete: 'clash', restore: 'equal', create: 'clash' },
  create: { update: 'clash', put: 'clash', delete: 'clash', restore: 'clash', create: 'equal' },
};

type EffectKind = 'set' | 'unset' | 'inc' | 'add' | 'remove';
type FieldCell =
  | 'both'
  | 'clash'
  /** Both if it is the same value, else clash. */
  | 'same-value'
  /** Both if it is another element, else clash. */
  | 'other-element';

/** One field: mine by theirs. */
export const FIELD_TABLE: Readonly<Record<EffectKind, Readonly<Record<EffectKind, FieldCell>>>> = {
  set: { set: 'same-value', unset: 'clash', inc: 'clash', add: 'clash', remove: 'clash' },
  unset: { set: 'clash', unset: 'both', inc: 'clash', add: 'clash', remove: 'clash' },
  inc: { set: 'clash', unset: 'clash', inc: 'both', add: 'clash', remove: 'clash' },
  add: { set: 'clash', unset: 'clash', inc: 'clash', add: 'both', remove: 'other-element' },
  remove: { set: 'clash', unset: 'clash', inc: 'clash', add: 'other-element', remove: 'both' },
};

/** A rule that this code does not know asks a person. */
export const KNOWN_RULES: ReadonlySet<string> = new Set<MergeRule>(['last', 'max', 'min']);

// ── judging ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One effect on one field. `value` is canonical: the value that is set, or the element. */
interface Effect {
  readonly field: string;
  readonly kind: EffectKind;
  readonly value: string;
  readonly rule: string | undefined;
}

interface TheirEffect extends Effect {
  readonly by: number[];
}

/** Theirs, read once: a long chain of mine is judged against thousands without looking at each again. */
export interface TheirsIndex {
  readonly ops: ReadonlyMap<Op, readonly number[]>;
  /** By field, each different effect once. */
  readonly effects: ReadonlyMap<string, readonly TheirEffect[]>;
  /** Canonical fields of their creates and restores. */
  readonly creates: readonly string[];
  readonly restores: readonly string[];
  readonly erased: readonly number[];
}

export function theirsIndex(theirs: readonly TheirChange[]): TheirsIndex {
  const ops = new Map<Op, number[]>();
  const effects = new Map<string, Map<string, TheirEffect>>();
  const creates: string[] = [];
  const restores: string[] = [];
  const erased: number[] = [];
  theirs.forEach((change, at) => {
    if (change === null) {
      erased.push(at);
      return;
    }
    const sameOp = ops.get(change.op);
    if (sameOp === undefined) ops.set(change.op, [at]);
    else sameOp.push(at);
    if (change.op === 'create') creates.push(canonical(change.fields));
    if (change.op === 'restore') restores.push(canonical(change.fields));
    for (const effect of effectsOf(change)) noteEffect(effects, effect, at);
  });
  const byField = new Map([...effects].map(([field, different]) => [field, [...different.values()]] as const));
  return { ops, effects: byField, creates, restores, erased };
}

function noteEffect(effects: Map<string, Map<string, TheirEffect>>, effect: Effect, at: number): void {
  let ofField = effects.get(effect.field);
  if (ofField === undefined) {
    ofField = new Map();
    effects.set(effect.field, ofField);
  }
  const key = `${effect.kind} ${effect.rule ?? ''} ${effect.value}`;
  const known = ofField.get(key);
  if (known === undefined) ofField.set(key, { ...effect, by: [at] });
  else known.by.push(at);
}

export function judgeAgainst(mine: Change, theirs: TheirsIndex): Judgement {
  // Equal creates count as one: nothing that either side did later clashes with the other's create.
  if (mine.op === 'create' && theirs.creates.includes(canonical(mine.fields))) return { verdict: 'same' };
  const whole = wholeClashes(mine, theirs);
  if (whole.length > 0) return { verdict: 'clash', fields: 'entity', theirs: ascending(whole) };
  const { fields, by } = fieldClashes(mine, theirs);
  if (fields.length > 0) return { verdict: 'clash', fields, theirs: ascending(by) };
  const row = ENTITY_TABLE[mine.op];
  const isSame = [...theirs.ops.keys()].some((op) => row[op] === 'same' || row[op] === 'equal');
  return { verdict: isSame ? 'same' : 'apply' };
}

/** Places of theirs that clash with mine as a whole. */
function wholeClashes(mine: Change, theirs: TheirsIndex): number[] {
  const places = [...theirs.erased];
  for (const [op, at] of theirs.ops) {
    const cell = ENTITY_TABLE[mine.op][op];
    if (cell === 'clash' || (cell === 'equal' && !isEqualToAll(mine, theirs))) places.push(...at);
  }
  return places;
}

const isEqualToAll = (mine: Change, theirs: TheirsIndex): boolean => {
  if (mine.op !== 'create' && mine.op !== 'restore') return false;
  const text = canonical(mine.fields);
  return (mine.op === 'create' ? theirs.creates : theirs.restores).every((other) => other === text);
};

function fieldClashes(mine: Change, theirs: TheirsIndex): { fields: string[]; by: number[] } {
  const fields = new Set<string>();
  const by: number[] = [];
  if (mine.op === 'update' || mine.op === 'put')
    for (const effect of effectsOf(mine))
      for (const their of theirs.effects.get(effect.field) ?? [])
        if (isClash(effect, their)) {
          fields.add(effect.field);
          by.push(...their.by);
        }
  return { fields: [...fields].sort(), by };
}

function isClash(mine: Effect, their: Effect): boolean {
  if (mine.rule !== undefined && mine.rule === their.rule && KNOWN_RULES.has(mine.rule)) return false;
  switch (FIELD_TABLE[mine.kind][their.kind]) {
    case 'both':
      return false;
    case 'clash':
      return true;
    case 'same-value':
      return mine.value !== their.value;
    case 'other-element':
      return mine.value === their.value;
  }
}

/** What a change does, field by field. Only `set` and `unset` carry a rule. A `put`, and the fields of a create, count as set. */
function effectsOf(change: Change): Effect[] {
  if (change.op === 'delete' || change.op === 'restore') return [];
  if (change.op === 'create') return Object.entries(change.fields).map(([field, value]) => effect(field, 'set', value));
  const ruleOf = (field: string): string | undefined =>
    change.rules !== undefined && Object.hasOwn(change.rules, field) ? change.rules[field] : undefined;
  const effects = Object.entries(change.set ?? {}).map(([field, value]) => effect(field, 'set', value, ruleOf(field)));
  if (change.op === 'put') return effects;
  for (const field of change.unset ?? []) effects.push(effect(field, 'unset', null, ruleOf(field)));
  for (const field of Object.keys(change.inc ?? {})) effects.push(effect(field, 'inc', null));
  for (const [field, elements] of Object.entries(change.add ?? {}))
    for (const element of elements) effects.push(effect(field, 'add', element));
  for (const [field, elements] of Object.entries(change.remove ?? {}))
    for (const element of elements) effects.push(effect(field, 'remove', element));
  return effects;
}

const effect = (field: string, kind: EffectKind, value: Json, rule?: string): Effect => ({
  field,
  kind,
  value: canonical(value),
  rule,
});

const ascending = (places: readonly number[]): number[] => [...new Set(places)].sort((a, b) => a - b);
