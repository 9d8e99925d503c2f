import {
  brokenRules,
  bytesToHex,
  type Change,
  canonical,
  type EventDraft,
  foldChange,
  type Issue,
  type Json,
  type JsonObject,
  LIMITS,
  randomHex,
  utf8Length,
  uuidv7,
} from '@holdfast/core';
import { type Changed, type FieldNames, makeChange } from './commit-change.ts';
import { CommitRanks } from './commit-rank.ts';
import { declareDefined } from './commit-type.ts';
import { stop } from './fault-error.ts';
import { inverseOf } from './inverse.ts';
import { type LocalEntities, type LocalEntity, PENDING_ARRIVAL } from './local.ts';
import type { CommitReceipt, CommitRequest, RecordedChange } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import { checkSeen } from './seen.ts';
import type { HeldState } from './tables.ts';

/**
 * A commit: what its author recorded becomes events with their final bytes, local state and an outbox row, in one
 * transaction (CM1). Base and prior are fixed here. Stops, before anything is written, with `invalid-change`,
 * `changed-meanwhile`, `rule-broken`, `batch-too-large`, `too-large`, `idempotency-mismatch`, `not-following`,
 * `not-ready`, `not-found`, `contended`.
 */
export interface CommitParts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
  /** How the request names fields. The engine's own requests use wire names, which no app version changes. */
  readonly names?: FieldNames;
}

export interface Committed {
  readonly receipt: CommitReceipt;
  /** What takes it back, by wire name; worked out where undo wants it. */
  readonly inverse: () => readonly RecordedChange[];
}

interface Working {
  readonly entity: LocalEntity;
  readonly before: HeldState | undefined;
  now: HeldState | undefined;
  lastEvent: string | undefined;
  hasEvents: boolean;
  readonly isLocal: boolean;
}

export function commitInside(parts: CommitParts, request: CommitRequest): Committed {
  const { store, entities, names = 'code' } = parts;
  const identity = requestIdentity(store, request);
  const standing = readStanding(store, request);
  if (standing.identity !== null) {
    if (standing.identity !== identity) stop('idempotency-mismatch', { actionId: request.actionId });
    return { receipt: { actionId: request.actionId, seq: store.seq, repeated: true, eventIds: [] }, inverse: () => [] };
  }
  checkLog(store, request, standing);
  checkReads(request);
  checkSeen(parts, request);
  declareDefined(parts, request.log, request.changes);

  const working = new Map<string, Working>();
  const work = (type: string, id: string): Working => {
    const name = `${type} ${id}`;
    const found = working.get(name);
    if (found !== undefined) return found;
    const entity = entities.get({ log: request.log, type, id });
    const made: Working = {
      entity,
      before: entity.local,
      now: entity.local,
      lastEvent: entities.priorOf(entity),
      hasEvents: false,
      isLocal: entity.table.model?.isLocal === true,
    };
    working.set(name, made);
    return made;
  };

  const ranks = new CommitRanks(store, request.log);
  const issues: Issue[] = [];
  const drafts: EventDraft[] = [];
  const needs = new Set<string>();
  const requires = new Map<string, readonly [string, string]>();
  const now = store.nowMs();
  const at = store.nowIso();
  let isMergedByAuthor = false;
  const queue: RecordedChange[] = [...request.changes];
  const followed = new Set<RecordedChange>();
  const taken = new Set<Working>();
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const one = work(next.entity, next.id);
    // Two deletions may ask for the same, and what one of them took may be named besides: the second finds it done.
    const isAsked = followed.has(next) || (next.do === 'delete' && taken.has(one));
    if (isAsked && one.now === undefined) continue;
    if (followed.has(next)) taken.add(one);
    const made: Changed = makeChange({
      store,
      entities,
      names,
      log: request.log,
      change: next,
      entity: one.entity,
      now: one.now,
      touched: working,
      ranks,
      issues,
    });
    // What a deletion asks of those who refer to it is part of the same commit (SC9).
    queue.unshift(...made.follow);
    for (const change of made.follow) followed.add(change);
    if (made.change === null) continue;
    const folded = foldChange(one.now?.fields, made.change);
    if (!folded.ok) {
      refuse(issues, next, folded.fault.facts);
      continue;
    }
    one.now = folded.value === undefined ? undefined : heldNow(store, one, folded.value, at);
    if (one.isLocal) continue;
    for (const action of made.needs) needs.add(action);
    for (const [type, id] of made.requires) requires.set(`${type} ${id}`, [type, id]);
    isMergedByAuthor ||= made.isUnderRules;
    const draft = draftOf({ store, now, at, change: made.change, type: made.type, one });
    one.lastEvent = draft.id;
    one.hasEvents = true;
    drafts.push(draft);
    if (drafts.length > LIMITS.commitEventsMax)
      stop('batch-too-large', { events: drafts.length + queue.length, eventsMax: LIMITS.commitEventsMax });
  }
  if (issues.length > 0) stop('invalid-change', { issues });
  checkRules([...working.values()]);
  // What the commit itself deletes need not be there after it.
  for (const [name, one] of working) if (one.now === undefined) requires.delete(name);

  const seq =
    drafts.length === 0
      ? 0
      : insertOutbox(store, request, drafts, {
          identity,
          now,
          frame: {
            merge: isMergedByAuthor ? 'author' : 'fields',
            ...(needs.size === 0 ? {} : { needs: [...needs].slice(0, LIMITS.needsMax) }),
            ...(requires.size === 0
              ? {}
              : { requires: [...requires.values()].slice(0, LIMITS.requiresMax) as unknown as Json }),
          },
        });
  if (drafts.length === 0) recordLocalOutcome(store, request.actionId, identity, now);
  if (drafts.length > 0) entities.keepDrafts(seq, drafts);
  for (const one of working.values()) apply(entities, one, seq);
  store.tracker.outbox ||= drafts.length > 0;
  return {
    receipt: {
      actionId: request.actionId,
      seq: store.seq + 1,
      repeated: false,
      eventIds: drafts.map((draft) => draft.id),
    },
    inverse: () => [...working.values()].reverse().flatMap((one) => inverseOf(one.entity, one.before, one.now)),
  };
}

// ── before anything is written ──────────────────────────────────────────────────────────────────────────────────────

/** What the caller asked for, not what became of it: a repeat of the same request must be known again (CM5). */
const requestIdentity = (store: ReplicaStore, { log, changes }: CommitRequest): string =>
  bytesToHex(store.platform.digest.sha256(`${log}\n${canonical(changes as unknown as Json)}`).subarray(0, 16));

interface Standing {
  /** Of the request that is known by this action id. */
  readonly identity: string | null;
  /** Null: the log is not followed. */
  readonly stage: string | null;
}

/** What a commit must know of the file, in one read. */
function readStanding(store: ReplicaStore, { actionId, log }: CommitRequest): Standing {
  const row = store.database
    .prepare(
      `SELECT ifnull((SELECT identity FROM main.hf_outbox WHERE seq = (SELECT seq FROM temp.hf_action WHERE action_id = ?1)), (SELECT identity FROM main.hf_outcome WHERE action_id = ?1)) AS identity,
       (SELECT stage FROM main.hf_log WHERE log = ?2 AND followed = 1) AS stage`,
    )
    .get(actionId, log);
  return row as unknown as Standing;
}

function checkLog(store: ReplicaStore, { log, changes }: CommitRequest, { stage }: Standing): void {
  if (stage === null) stop('not-following', { log });
  if (stage === 'visible') return;
  // BS5: creates, and changes of what was created here.
  const made = new Set(
    changes
      .filter((change) => change.do === 'create' || change.do === 'put')
      .map(({ entity, id }) => `${entity} ${id}`),
  );
  for (const { entity, id } of changes) {
    if (made.has(`${entity} ${id}`) || store.tableOf(entity).read(log, id) !== undefined) continue;
    stop('not-ready', { log, entity, id });
  }
}

function checkReads({ reads, digestOf }: CommitRequest): void {
  for (const read of reads)
    if (digestOf === undefined || digestOf(read.sql, read.parameters) !== read.digest)
      stop('contended', { sql: read.sql });
}

function refuse(issues: Issue[], change: RecordedChange, facts: Readonly<Record<string, unknown>> = {}): void {
  const reason = String(facts['reason'] ?? '');
  if (reason === 'entity-absent') stop('not-found', { entity: change.entity, id: change.id });
  const path = String(facts['path'] ?? '')
    .split('.')
    .slice(2);
  issues.push({ path: [change.entity, change.id, ...path], code: 'out-of-range', message: sentence(reason) });
}

const SENTENCES: Readonly<Record<string, string>> = {
  'entity-present': 'an entity with this id is there already',
  'sum-out-of-range': 'the count would leave ±(2^53−1)',
  'not-an-integer': 'this field does not hold a count',
  'not-a-set': 'this field does not hold a set',
  'entity-too-large': `an entity holds at most ${LIMITS.entityBytesMax} bytes`,
  'too-many-fields': `an entity holds at most ${LIMITS.fieldsPerEntityMax} fields`,
};
const sentence = (reason: string): string => SENTENCES[reason] ?? reason;

/** MG4: a rule that held before must hold after. */
function checkRules(working: readonly Working[]): void {
  for (const { entity, before, now } of working) {
    const { model } = entity.table;
    if (model === null || now === undefined || model.data.rules === undefined) continue;
    const broken = brokenRules(model.data, now.fields);
    if (broken.length === 0) continue;
    const already = before === undefined ? [] : brokenRules(model.data, before.fields);
    const rules = broken.filter((rule) => !already.includes(rule));
    if (rules.length > 0) stop('rule-broken', { entity: entity.key.type, id: entity.key.id, rules });
  }
}

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function draftOf(parts: {
  readonly store: ReplicaStore;
  readonly now: number;
  readonly at: string;
  readonly change: Change;
  readonly type: string;
  readonly one: Working;
}): EventDraft {
  const { store, change, one } = parts;
  const { key, confirmed } = one.entity;
  const { random } = store.platform;
  // Members in canonical order, so that writing them is one native call.
  return {
    at: parts.at,
    base: change.op === 'create' ? 0 : confirmed.version,
    change,
    entityId: key.id,
    entityType: key.type,
    id: uuidv7(parts.now, random),
    ...(one.lastEvent === undefined ? {} : { prior: one.lastEvent }),
    salt: randomHex(random, 16),
    type: parts.type,
  };
}

const heldNow = (store: ReplicaStore, one: Working, fields: JsonObject, at: string): HeldState => {
  const made = one.now?.meta ?? { createdBy: store.account, createdAt: at, arrival: PENDING_ARRIVAL };
  return {
    version: one.entity.confirmed.version,
    fields,
    meta: {
      createdBy: made.createdBy,
      createdAt: made.createdAt,
      arrival: made.arrival,
      updatedBy: store.account,
      updatedAt: at,
    },
  };
};

function insertOutbox(
  store: ReplicaStore,
  request: CommitRequest,
  drafts: readonly EventDraft[],
  facts: { readonly identity: string; readonly now: number; readonly frame: JsonObject },
): number {
  const texts = drafts.map((draft) => canonical(draft as unknown as Json));
  let bytes = 0;
  for (const text of texts) {
    const length = utf8Length(text);
    if (length > LIMITS.eventBytesMax) stop('too-large', { bytes: length, limit: LIMITS.eventBytesMax });
    bytes += length;
  }
  if (bytes > LIMITS.commitBytesMax)
    stop('batch-too-large', { bytes, bytesMax: LIMITS.commitBytesMax, events: drafts.length });
  const { lastInsertRowid } = store.database
    .prepare(
      'INSERT INTO main.hf_outbox (log, action_id, request_id, state, drafts, events, bytes, frame, identity, label, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    .run(
      request.log,
      request.actionId,
      request.actionId,
      'queued',
      `[${texts.join(',')}]`,
      drafts.length,
      bytes,
      JSON.stringify(facts.frame),
      facts.identity,
      request.label ?? null,
      facts.now,
    );
  return lastInsertRowid;
}

function recordLocalOutcome(store: ReplicaStore, actionId: string, identity: string, now: number): void {
  store.database
    .prepare('INSERT INTO main.hf_outcome (action_id, identity, outcome, at) VALUES (?, ?, ?, ?)')
    .run(actionId, identity, '{"state":"local"}', now);
}

function apply(entities: LocalEntities, one: Working, seq: number): void {
  if (one.now === one.before && !one.hasEvents) return;
  if (one.isLocal) {
    entities.setConfirmed(one.entity, { version: 0, state: one.now });
    return;
  }
  const { now } = one;
  const isFresh = now !== undefined && now.meta.arrival === PENDING_ARRIVAL;
  const local = isFresh ? { ...now, meta: { ...now.meta, arrival: PENDING_ARRIVAL + seq } } : now;
  entities.addPending(one.entity, seq, one.lastEvent as string, local);
}
