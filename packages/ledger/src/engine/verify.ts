import {
  canonical,
  chainNext,
  chainStart,
  type Digest,
  type EntityState,
  type Envelope,
  type EventDraft,
  foldStored,
  type Json,
  leafOf,
  StateSignature,
  type StoredEvent,
} from '@holdfast/core';
import type { LogRef, VerifyProblem, VerifyReport } from './engine.ts';
import { envelopeWriter } from './envelope.ts';
import { lastVersionOf } from './event-page.ts';
import { stateOf } from './log-in-work.ts';
import {
  type EntityKey,
  type EntityRow,
  type EventText,
  entityKey,
  type LedgerStore,
  type LogRow,
  type PageRows,
  type StoreFinding,
} from './store-port.ts';

const PROBLEMS_MAX = 100;
const EVENTS_PER_READ = 512;
const ENTITIES_PER_READ = 512;

/**
 * Computes a log from its events and compares it with what is stored: chain at every version, dense numbers, the folded
 * state of every entity, the state signature after every operation. Then the store compares what it says twice: ids, fences,
 * counters, its file. Reads page by page and holds the folded state in memory. Changes nothing; what is appended meanwhile is not looked at. Null where the log is absent.
 */
export async function verifyLog(store: LedgerStore, ref: LogRef, digest: Digest): Promise<VerifyReport | null> {
  const log = await store.log(ref);
  if (log === undefined) return null;
  const check = new LogCheck(log, digest);
  for (;;) {
    const page = await store.page(ref, {
      after: check.version,
      eventsMax: EVENTS_PER_READ,
      allChains: true,
      choose: (_log, operations) => operations.map(lastVersionOf).findLast((version) => version <= log.head) ?? null,
    });
    if (page === undefined || page.events.length === 0) break;
    check.page(page);
  }
  check.compareHead();
  for (const part of ['run-time-types', 'others'] as const)
    for (let after: EntityKey | null = null; ; ) {
      const rows = await store.entities(ref, {
        part,
        after,
        max: ENTITIES_PER_READ,
        bytesMax: Number.MAX_SAFE_INTEGER,
      });
      for (const row of rows?.entities ?? []) check.compareEntity(row);
      after = rows?.entities.at(-1) ?? null;
      if (rows?.more !== true || after === null) break;
    }
  check.compareMissing();
  check.add((await store.examine(ref, PROBLEMS_MAX)) ?? []);
  return check.report();
}

/** A log as its events say it is, page after page. */
class LogCheck {
  readonly #log: LogRow;
  readonly #digest: Digest;
  readonly #signature: StateSignature;
  readonly #problems: VerifyProblem[] = [];
  readonly #entities = new Map<string, { state: EntityState | undefined; version: number; isErased: boolean }>();
  readonly #seen = new Set<string>();
  #chain: string;
  #version = 0;
  /** After an erasure nobody can compute the state, so its signature is not compared. */
  #isErased = false;

  constructor(log: LogRow, digest: Digest) {
    this.#log = log;
    this.#digest = digest;
    this.#signature = new StateSignature(digest);
    this.#chain = chainStart(log.identity, digest);
  }

  get version(): number {
    return this.#version;
  }

  page({ events, chains }: PageRows): void {
    for (const event of events) {
      this.#event(event, chains.get(event.version) ?? '');
      const { operation } = event;
      if (event.version === lastVersionOf(operation) && !this.#isErased)
        this.#compare('signature', { version: event.version }, this.#signature.toHex(), operation.signature);
    }
  }

  #event(event: EventText, chain: string): void {
    const { version, draft: draftText, leaf } = event;
    this.#compare('version', { version }, String(this.#version + 1), String(version));
    this.#version = version;
    const envelopeText = envelopeWriter(event.operation)(event);
    const envelope = JSON.parse(envelopeText) as Envelope;
    const draft = draftText === null ? null : (JSON.parse(draftText) as EventDraft);
    if (draft !== null) this.#compare('draft', { version }, canonical(draft as unknown as Json), draftText as string);
    const own = draft === null ? (leaf ?? '') : leafOf(draft, this.#digest);
    this.#chain = chainNext(this.#chain, own, envelopeText, this.#digest);
    this.#compare('chain', { version }, this.#chain, chain);
    // One broken link would break every later one: go on from what is stored.
    this.#chain = chain;
    if (draft === null) this.#isErased = true;
    else this.#fold({ ...draft, ...envelope });
  }

  #fold(event: StoredEvent): void {
    const key = entityKey(event.entityType, event.entityId);
    const before = this.#entities.get(key) ?? { state: undefined, version: 0, isErased: false };
    // An erased event of an entity leaves a hole in its versions.
    const isErased = before.isErased || (this.#isErased && event.entityVersion !== before.version + 1);
    if (!isErased)
      this.#compare(
        'entity-version',
        { version: event.version },
        String(before.version + 1),
        String(event.entityVersion),
      );
    const state = foldStored(before.state, event);
    this.#signature.replace(before.state, state);
    this.#entities.set(key, { state, version: event.entityVersion, isErased });
  }

  compareHead(): void {
    const at = { version: this.#log.head };
    this.#compare('version', at, String(this.#version), String(this.#log.head));
    this.#compare('chain', at, this.#chain, this.#log.chain);
    if (!this.#isErased) this.#compare('signature', at, this.#signature.toHex(), this.#log.signature);
  }

  compareEntity(row: EntityRow): void {
    if (row.lastVersion > this.#log.head) return;
    const { type, id } = row;
    this.#seen.add(entityKey(type, id));
    const found = this.#entities.get(entityKey(type, id));
    if (found?.isErased === true || (found === undefined && this.#isErased)) return;
    const expected = found?.state === undefined ? 'absent' : canonical(found.state as unknown as Json);
    const stored = stateOf(row);
    this.#compare(
      'entity',
      { entity: { type, id } },
      expected,
      stored === undefined ? 'absent' : canonical(stored as unknown as Json),
    );
  }

  compareMissing(): void {
    for (const [key, { state, isErased }] of this.#entities)
      if (state !== undefined && !isErased && !this.#seen.has(key))
        this.#compare('entity', { entity: { type: state.type, id: state.id } }, 'present', 'absent');
  }

  add(found: readonly StoreFinding[]): void {
    for (const { expected, found: is, ...where } of found)
      if (this.#problems.length < PROBLEMS_MAX)
        this.#problems.push({ ...where, expected: shortened(expected), found: shortened(is) });
  }

  report(): VerifyReport {
    let entities = 0;
    for (const { state } of this.#entities.values()) if (state !== undefined) entities += 1;
    return {
      log: this.#log.log,
      events: this.#version,
      entities,
      chain: this.#chain,
      signature: this.#signature.toHex(),
      problems: this.#problems,
    };
  }

  #compare(
    what: VerifyProblem['what'],
    where: Pick<VerifyProblem, 'version' | 'entity'>,
    expected: string,
    found: string,
  ): void {
    if (expected === found || this.#problems.length >= PROBLEMS_MAX) return;
    this.#problems.push({ what, ...where, expected: shortened(expected), found: shortened(found) });
  }
}

/** Enough to look at; a payload does not belong in a report. */
const shortened = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 200)}…`);
