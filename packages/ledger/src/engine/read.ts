import type { EntitiesPage, EventsPage, Through } from '@holdfast/core';
import { andThen, type JsonText, type MaybePromise } from './answer.ts';
import type { ThroughOf } from './attest.ts';
import type { EntitiesQuery, EntityAnswer, EventsQuery, HistoryAnswer, HistoryQuery, LogRef } from './engine.ts';
import { endOfPage, eventTexts, type PageBounds, type PageEnd, pageBounds } from './event-page.ts';
import { PageCache } from './page-cache.ts';
import type { EntitiesRows, EntityKey, EntityRow, LedgerStore, LogRow, PageRows } from './store-port.ts';

/** Reading a log. Texts are spliced from what is stored: no payload is parsed, whatever a page holds. */
export interface Reader {
  events(ref: LogRef, query: EventsQuery): MaybePromise<ReadAnswer<EventsPage>>;
  /** Null for a cursor that this ledger never gave. */
  entities(ref: LogRef, query: EntitiesQuery): MaybePromise<ReadAnswer<EntitiesPage> | null>;
  entity(ref: LogRef, key: EntityKey): MaybePromise<ReadAnswer<EntityAnswer>>;
  history(ref: LogRef, query: HistoryQuery): MaybePromise<ReadAnswer<HistoryAnswer>>;
  /** The text of a page after a version, for whoever makes another frame around it. */
  page(ref: LogRef, after: number, bounds: PageBounds): MaybePromise<PageText | undefined>;
}

/** Undefined where the log does not exist. */
export type ReadAnswer<T> = { readonly log: LogRow; readonly body: JsonText<T> } | undefined;

export interface PageText {
  readonly log: LogRow;
  /** Events joined by commas. */
  readonly events: string;
  readonly through: Through;
  readonly end: PageEnd | null;
  readonly bytes: number;
}

export interface ReaderParts {
  readonly store: LedgerStore;
  readonly throughOf: ThroughOf;
  readonly cacheBytesMax: number;
}

export const epochOf = (log: LogRow): string => log.epochs[log.epochs.length - 1]?.epoch ?? '';

export function createReader({ store, throughOf, cacheBytesMax }: ReaderParts): Reader {
  const cache = new PageCache<PageText>(cacheBytesMax);

  const page = (ref: LogRef, after: number, bounds: PageBounds): MaybePromise<PageText | undefined> => {
    let end: PageEnd | null = null;
    const rows = store.page(ref, {
      after,
      eventsMax: bounds.eventsMax,
      choose: (_log, operations) => {
        end = endOfPage(operations, after, bounds);
        return end?.to ?? null;
      },
    });
    return andThen(rows, (found) => (found === undefined ? undefined : pageText(found, end, throughOf)));
  };

  const events = (ref: LogRef, query: EventsQuery): MaybePromise<ReadAnswer<EventsPage>> => {
    const bounds = pageBounds(query.limit);
    return andThen(store.log(ref), (log): MaybePromise<ReadAnswer<EventsPage>> => {
      if (log === undefined) return undefined;
      const key = `${log.identity} ${epochOf(log)} ${query.after} ${bounds.eventsMax}`;
      const cached = cache.get(key);
      if (cached !== undefined) return { log, body: eventsBody(cached, log) };
      return andThen(page(ref, query.after, bounds), (found) => {
        if (found === undefined) return undefined;
        if (isFull(found)) cache.set(key, found);
        return { log: found.log, body: eventsBody(found, found.log) };
      });
    });
  };

  return {
    page,
    events,
    entities: (ref, query) => readEntities(store, throughOf, ref, query),
    entity: (ref, key) =>
      andThen(store.entity(ref, key), (found) => {
        if (found === undefined) return undefined;
        const { log, entity } = found;
        const text = entity === undefined || entity.fields === null ? 'null' : entityText(entity, entity.fields);
        return { log, body: `{"asOf":${log.head},"entity":${text}}` };
      }),
    history: (ref, query) => readHistory(store, ref, query),
  };
}

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function pageText(rows: PageRows, end: PageEnd | null, throughOf: ThroughOf): PageText {
  const { log, events, chains } = rows;
  const last = events[events.length - 1];
  const through =
    last === undefined
      ? throughOf(log.identity, log.head, log.chain)
      : throughOf(log.identity, last.version, chains.get(last.version) ?? '');
  const texts = eventTexts(events).join(',');
  return { log, events: texts, through, end: last === undefined ? null : end, bytes: texts.length };
}

/** A page that ends before the head was ended by its bounds, and stays as it is for ever. */
const isFull = ({ through, log }: PageText): boolean => through.version < log.head;

const eventsBody = ({ events, through, end }: PageText, log: LogRow): JsonText<EventsPage> =>
  `{"epoch":${JSON.stringify(epochOf(log))},"events":[${events}],"head":${log.head},"more":${through.version < log.head}${partMark(end)},"through":${JSON.stringify(through)}}`;

export const partMark = (end: PageEnd | null): string =>
  end?.part === undefined ? '' : `,"part":${end.part},"parts":${end.parts}`;

// ── entities ────────────────────────────────────────────────────────────────────────────────────────────────────────

type Part = 'run-time-types' | 'others';
interface Cursor {
  readonly part: Part;
  readonly after: EntityKey | null;
}

/** `t:type:id` or `o:type:id`: types have no colon, so the first two are ours. Opaque to everybody else. */
const cursorText = ({ part, after }: Cursor): string =>
  `${part === 'run-time-types' ? 't' : 'o'}:${after === null ? '' : `${after.type}:${after.id}`}`;

function readCursor(text: string | undefined): Cursor | null {
  if (text === undefined) return { part: 'run-time-types', after: null };
  const match = /^([to]):(?:([A-Za-z][\w.-]*):([!-~]{1,128}))?$/.exec(text);
  if (match === null) return null;
  const [, part, type, id] = match;
  return {
    part: part === 't' ? 'run-time-types' : 'others',
    after: type === undefined || id === undefined ? null : { type, id },
  };
}

/** BS1: run-time types first, then all others in byte order of (type, id). A page is of one of the two. */
function readEntities(
  store: LedgerStore,
  throughOf: ThroughOf,
  ref: LogRef,
  query: EntitiesQuery,
): MaybePromise<ReadAnswer<EntitiesPage> | null> {
  const cursor = readCursor(query.cursor);
  if (cursor === null) return null;
  const { eventsMax: max, bytesMax } = pageBounds(query.limit);
  return andThen(
    store.entities(ref, { ...cursor, max, bytesMax }),
    (rows): MaybePromise<ReadAnswer<EntitiesPage> | null> => {
      if (rows === undefined) return undefined;
      // Most logs have no run-time types: their first page is the first one of the others.
      if (rows.entities.length === 0 && cursor.part === 'run-time-types')
        return readEntities(store, throughOf, ref, { ...query, cursor: cursorText({ part: 'others', after: null }) });
      return { log: rows.log, body: entitiesBody(rows, nextCursor(rows, cursor), throughOf) };
    },
  );
}

function nextCursor({ entities, more }: EntitiesRows, { part }: Cursor): Cursor | null {
  const last = entities[entities.length - 1];
  if (more && last !== undefined) return { part, after: { type: last.type, id: last.id } };
  return part === 'run-time-types' ? { part: 'others', after: null } : null;
}

function entitiesBody(
  { log, entities }: EntitiesRows,
  next: Cursor | null,
  throughOf: ThroughOf,
): JsonText<EntitiesPage> {
  const asOf = JSON.stringify(throughOf(log.identity, log.head, log.chain));
  const texts = entities.map((entity) => entityText(entity, entity.fields ?? '{}')).join(',');
  const more = next === null ? '' : `,"next":${JSON.stringify(cursorText(next))}`;
  return `{"asOf":${asOf},"entities":[${texts}],"epoch":${JSON.stringify(epochOf(log))}${more}}`;
}

const entityText = (entity: EntityRow, fields: string): string =>
  `{"arrival":${entity.arrival},"createdAt":${JSON.stringify(entity.createdAt)},"createdBy":${JSON.stringify(entity.createdBy)},"fields":${fields},"id":${JSON.stringify(entity.id)},"type":${JSON.stringify(entity.type)},"updatedAt":${JSON.stringify(entity.updatedAt)},"updatedBy":${JSON.stringify(entity.updatedBy)},"version":${entity.version}}`;

// ── history ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function readHistory(store: LedgerStore, ref: LogRef, query: HistoryQuery): MaybePromise<ReadAnswer<HistoryAnswer>> {
  const { eventsMax, bytesMax } = pageBounds(query.limit);
  const { type, id } = query;
  return andThen(store.log(ref), (log) => {
    if (log === undefined) return undefined;
    return andThen(store.history(ref, { type, id, after: query.after ?? 0, max: eventsMax + 1 }), (rows) => {
      const texts: string[] = [];
      let bytes = 0;
      for (const text of eventTexts(rows ?? [])) {
        bytes += text.length;
        if (texts.length === eventsMax || (texts.length > 0 && bytes > bytesMax)) break;
        texts.push(text);
      }
      const more = texts.length < (rows ?? []).length;
      return { log, body: `{"events":[${texts.join(',')}],"more":${more}}` as JsonText<HistoryAnswer> };
    });
  });
}
