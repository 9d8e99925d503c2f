import {
  canonical,
  chainNext,
  type Database,
  type Digest,
  type Envelope,
  type ErasedEvent,
  type EventDraft,
  fail,
  foldStored,
  type Json,
  leafOfText,
  noticesOf,
  type Outcome,
  type OwnEventReference,
  ok,
  RUN_TIME_TYPE,
  StateSignature,
  type StoredEvent,
  splitEvent,
} from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import { isHistoryGone } from './history-gone.ts';
import type { Judge } from './judge.ts';
import type { Confirmed, LocalEntities, LocalEntity } from './local.ts';
import type { Outbox } from './outbox.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { IngestPage, IngestReport } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import { naming } from './row-fault.ts';
import type { EntityKey, HeldState } from './tables.ts';

/**
 * The one path by which confirmed state advances (6.3). Pulled pages, pushed frames and push answers all pass here; the
 * chain is checked over every event before anything is believed; events, rows, bases, outbox, head, chain and signature
 * move in one transaction. Ingest never judges an event, and never changes bytes.
 */
export interface IngestParts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
  readonly outbox: Outbox;
  readonly desk: DeskWriter;
  readonly judge: Judge;
}

/** An event with the texts that chain and file need, made once. */
export interface ReadEvent {
  readonly version: number;
  /** Null where its bytes were erased. */
  readonly event: StoredEvent | null;
  readonly envelope: Envelope;
  readonly draftText: string | null;
  readonly envelopeText: string;
  readonly leaf: string;
  readonly chain: string;
  /** The operation of this replica that it belongs to. */
  readonly own: OutboxRow | null;
}

type IngestFault = 'page-gap' | 'chain-mismatch' | 'not-following' | 'history-changed';

export function ingestInside(parts: IngestParts, page: IngestPage): Outcome<IngestReport, IngestFault> {
  const { store, entities, outbox, desk, judge } = parts;
  const row = store.database
    .prepare('SELECT head, chain, signature FROM main.hf_log WHERE log = ? AND followed = 1')
    .get(page.log);
  if (row === undefined) return fail('not-following', { log: page.log });
  // It was on its way when the ledger lost its history: what it would confirm was never counted as lost (HL1).
  if (isHistoryGone(store.database, page.log)) return fail('history-changed', { log: page.log });
  const head = row['head'] as number;
  const read = readPage({ digest: store.platform.digest, outbox }, page, { head, chain: row['chain'] as string });
  if (!read.ok) return read;
  const { events, ignored } = read.value;
  const last = events.at(-1);
  const through = last?.version ?? head;

  const signature = new StateSignature(store.platform.digest, row['signature'] as string);
  const touched = new Map<LocalEntity, HeldState | undefined>();
  const confirmed: { requestId: string; version: number }[] = [];
  let isDefining = false;
  const insert = store.database.prepare(
    'INSERT INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  for (const one of events) {
    const { event, envelope } = one;
    if (event !== null) {
      const entity = entities.ofLog({ log: page.log, type: event.entityType, id: event.entityId });
      if (!touched.has(entity)) touched.set(entity, entity.confirmed.state);
      if (one.own === null) tellNotices(parts, page.log, entity, event);
      naming(entity.key, event.entityVersion, () => fold(store, entity, event));
      isDefining ||= event.entityType === RUN_TIME_TYPE;
    }
    insert.run(
      page.log,
      one.version,
      event?.id ?? '',
      event?.entityType ?? '',
      event?.entityId ?? '',
      envelope.entityVersion,
      envelope.actionId,
      one.own === null ? 0 : 1,
      one.draftText,
      event === null ? one.leaf : null,
      one.envelopeText,
      one.chain,
    );
    if (one.own !== null && envelope.index === envelope.count - 1) {
      confirmed.push({ requestId: one.own.requestId, version: one.version });
      outbox.retire(entities, one.own, one.version);
    }
  }
  for (const [entity, before] of touched) {
    signature.replace(signed(entity, before), signed(entity, entity.confirmed.state));
    entities.setConfirmed(entity, entity.confirmed);
  }
  store.database
    .prepare(
      'UPDATE main.hf_log SET head = ?, chain = ?, signature = ?, ledger_head = max(ifnull(ledger_head, 0), ?), attest = ifnull(?, attest), synced_at = ? WHERE log = ?',
    )
    .run(
      through,
      last?.chain ?? (row['chain'] as string),
      signature.toHex(),
      page.head,
      page.through.attest ?? null,
      store.nowIso(),
      page.log,
    );
  store.tracker.logs = true;
  // Entities of a new type move into its table from where the page put them, before own work on them is judged.
  if (isDefining) {
    entities.flush();
    if (store.followDefinitions()) entities.forget();
  }
  // A version that was promised to own work and came to somebody else.
  outbox.answers.askAgain(page.log, through);
  const judged = judge.judgeDue(entities, page.log, through >= page.head ? Number.MAX_SAFE_INTEGER : through);
  desk.refresh(touched.keys());
  return ok({
    applied: events.length,
    ignored,
    head: through,
    confirmed,
    merged: judged.merged,
    parked: judged.parked,
  });
}

// ── reading a page ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Continues {
  readonly head: number;
  readonly chain: string;
}

/** Density and chain, before anything is believed (IN1, IN3). Events at or below the head are left out. */
export function readPage(
  { digest, outbox }: { readonly digest: Digest; readonly outbox: Outbox | null },
  page: IngestPage,
  { head, chain }: Continues,
): Outcome<{ readonly events: readonly ReadEvent[]; readonly ignored: number }, 'page-gap' | 'chain-mismatch'> {
  const events: ReadEvent[] = [];
  let ignored = 0;
  let version = head;
  let at = chain;
  // An empty outbox owns nothing: no operation has to be looked up.
  const mayOwn = outbox !== null && !outbox.isEmpty();
  let own: OutboxRow | null = null;
  for (const given of page.events) {
    if (given.version <= head) {
      ignored += 1;
      continue;
    }
    if (given.version !== version + 1)
      return fail('page-gap', { log: page.log, expected: version + 1, found: given.version });
    version += 1;
    const texts = isOwnReference(given) ? ownTexts(outbox, given) : textsOf(given, digest);
    if (texts === null)
      return fail('page-gap', { log: page.log, reason: 'an own event whose operation is not here', version });
    at = chainNext(at, texts.leaf ?? leafOfText(texts.draftText as string, digest), texts.envelopeText, digest);
    if (mayOwn && texts.envelope.index === 0) own = outbox.byAction(texts.envelope.actionId) ?? null;
    events.push({
      version,
      event: texts.event,
      envelope: texts.envelope,
      draftText: texts.draftText,
      envelopeText: texts.envelopeText,
      leaf: texts.leaf ?? '',
      chain: at,
      own: mayOwn ? own : null,
    });
  }
  const isThrough = page.through.version === version;
  if (isThrough && page.through.chain !== at) return fail('chain-mismatch', { log: page.log, version });
  if (!isThrough && events.length > 0)
    return fail('page-gap', { log: page.log, expected: page.through.version, found: version });
  return ok({ events, ignored });
}

interface Texts {
  readonly event: StoredEvent | null;
  readonly envelope: Envelope;
  readonly draftText: string | null;
  readonly envelopeText: string;
  readonly leaf: string | null;
}

const isOwnReference = (given: StoredEvent | ErasedEvent | OwnEventReference): given is OwnEventReference =>
  !('entityVersion' in given);

function textsOf(given: StoredEvent | ErasedEvent, _digest: Digest): Texts {
  if ('erased' in given) {
    const { leaf, erased: _erased, ...envelope } = given;
    return { event: null, envelope, draftText: null, envelopeText: canonical(envelope as unknown as Json), leaf };
  }
  const { draft, envelope } = splitEvent(given);
  return {
    event: given,
    envelope,
    draftText: canonical(draft as unknown as Json),
    envelopeText: canonical(envelope as unknown as Json),
    leaf: null,
  };
}

/** The sender has the bytes; the envelope is rebuilt from the answer, which was recorded before. */
function ownTexts(outbox: Outbox | null, { requestId, version, index }: OwnEventReference): Texts | null {
  const row = outbox?.byRequest(requestId);
  const draft = row?.drafts[index];
  if (row === undefined || draft === undefined || row.answer === null || outbox === null) return null;
  const { answer } = row;
  const assigned = answer.assigned?.[draft.id];
  const envelope: Envelope = {
    actionId: row.actionId,
    actor: answer.actor,
    ...(assigned === undefined ? {} : { assigned }),
    count: row.drafts.length,
    entityVersion: answer.entityVersions[index] as number,
    index,
    recordedAt: answer.recordedAt,
    replicaId: outbox.replicaId,
    requestId: answer.acceptedUnder ?? requestId,
    version,
  };
  return {
    event: { ...draft, ...envelope },
    envelope,
    draftText: canonical(draft as unknown as Json),
    envelopeText: canonical(envelope as unknown as Json),
    leaf: null,
  };
}

// ── folding ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export const heldOf = (state: ReturnType<typeof foldStored>): HeldState | undefined =>
  state === undefined
    ? undefined
    : {
        version: state.version,
        fields: state.fields,
        meta: {
          createdBy: state.createdBy,
          createdAt: state.createdAt,
          updatedBy: state.updatedBy,
          updatedAt: state.updatedAt,
          arrival: state.arrival,
        },
      };

export function foldHeld(before: HeldState | undefined, event: StoredEvent): HeldState | undefined {
  const state =
    before === undefined
      ? undefined
      : { type: event.entityType, id: event.entityId, version: before.version, fields: before.fields, ...before.meta };
  return heldOf(foldStored(state, event));
}

function fold(store: ReplicaStore, entity: LocalEntity, event: StoredEvent): void {
  const before = entity.confirmed.state;
  const after = foldHeld(before, event);
  const confirmed: Confirmed = { version: event.entityVersion, state: after };
  entity.confirmed = confirmed;
  noteDeletion(store.database, entity.key, before, after, event);
}

/** What a deleted entity was, for restoring it and for edits that are kept (MG5). */
export function noteDeletion(
  database: Database,
  { log, type, id }: EntityKey,
  before: HeldState | undefined,
  after: HeldState | undefined,
  event: StoredEvent,
): void {
  if (after === undefined && before !== undefined)
    database
      .prepare('INSERT OR REPLACE INTO main.hf_deleted (log, type, id, version, fields, at) VALUES (?, ?, ?, ?, ?, ?)')
      .run(log, type, id, event.entityVersion, JSON.stringify(before.fields), event.version);
  else if (after === undefined)
    database
      .prepare('UPDATE main.hf_deleted SET version = ? WHERE log = ? AND type = ? AND id = ?')
      .run(event.entityVersion, log, type, id);
  else if (before === undefined)
    database.prepare('DELETE FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?').run(log, type, id);
}

const signed = ({ key }: LocalEntity, state: HeldState | undefined) =>
  state === undefined ? undefined : { type: key.type, id: key.id, version: state.version, fields: state.fields };

/** What a foreign event took from one's own that its author had not seen (MG6). */
function tellNotices({ store, desk }: IngestParts, log: string, entity: LocalEntity, event: StoredEvent): void {
  const { change } = event;
  const mayTake =
    change.op === 'delete' || change.op === 'restore' || ('rules' in change && change.rules !== undefined);
  if (!mayTake || event.actor === store.account) return;
  const rows = store.database
    .prepare(
      'SELECT draft, envelope FROM main.hf_event WHERE log = ? AND type = ? AND entity = ? AND entity_version > ? AND own = 1 AND draft IS NOT NULL ORDER BY entity_version',
    )
    .all(log, event.entityType, event.entityId, 0);
  if (rows.length === 0) return;
  const mine = rows.map((row) => ({
    ...(JSON.parse(row['draft'] as string) as EventDraft),
    ...(JSON.parse(row['envelope'] as string) as Envelope),
  }));
  for (const notice of noticesOf({ event, before: entity.confirmed.state?.fields, mine })) {
    const own = mine.find((one) => one.id === notice.eventId);
    desk.tell({ log, actionId: own?.actionId ?? '', drafts: own === undefined ? [] : [own] }, notice);
  }
}
