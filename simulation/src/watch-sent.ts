import { type Database, type EventDraft, HEADERS, LIMITS, type WireRequest } from '@holdfast/core';
import type { Violation } from './violation.ts';

/**
 * What may leave a device, looked at the moment it leaves, with nothing but the request and the rows of its file. Held
 * against it: the permit that it names has started (I20), nothing is sent under a second id as it was, nor before its first
 * one was answered (I21), nor other bytes under one id (I05), and nothing before what it builds on (I17, ST2).
 */
export interface SentWatch {
  /** `database`: of the host that runs now. */
  leaves(database: Database, request: { readonly url: string } & Pick<WireRequest, 'headers' | 'body'>): void;
  /** The file is an older one, which does not know what it sent since. */
  forget(): void;
}

interface Operation {
  readonly requestId: string;
  readonly actionId: string;
  readonly events: readonly EventDraft[];
  readonly needs?: readonly string[];
}

const KEPT_MAX = 2_000;

export function createSentWatch(found: (violation: Omit<Violation, 'device'>) => void): SentWatch {
  /** By the bytes of its events: the request id under which an operation was sent last. */
  const sentAs = new Map<string, string>();
  /** By action: the request id, and the bytes under it, as which it was sent last. */
  const last = new Map<string, { readonly requestId: string; readonly bytes: string }>();

  const noteIds = (database: Database, operations: readonly Operation[]): void => {
    const size = operations.reduce((sum, { events }) => sum + JSON.stringify(events).length, 0);
    if (operations.length > 1 && size > LIMITS.pageBytesMax)
      found({ invariant: 'I28', what: `a push holds ${operations.length} operations of ${size} bytes together` });
    for (const { requestId, actionId, events } of operations) {
      const bytes = JSON.stringify(events);
      const before = sentAs.get(bytes);
      if (before !== undefined && before !== requestId && !wasRefused(database, before))
        found({ invariant: 'I21', what: `${actionId} was sent as ${before}, and as it was once more as ${requestId}` });
      if (before !== undefined || sentAs.size < KEPT_MAX) sentAs.set(bytes, requestId);
      const latest = last.get(actionId);
      if (latest?.requestId === requestId && latest.bytes !== bytes)
        found({
          invariant: 'I05',
          what: `${actionId} was sent as ${requestId}, and with other bytes under the same id`,
        });
      if (latest !== undefined && latest.requestId !== requestId && !wasRefused(database, latest.requestId))
        found({
          invariant: 'I21',
          what: `${actionId} was sent as ${requestId}, and nothing was said of ${latest.requestId}`,
        });
      if (latest !== undefined || last.size < KEPT_MAX) last.set(actionId, { requestId, bytes });
    }
  };

  return {
    leaves: (database, { url, headers, body }) => {
      const number = Number(headers[HEADERS.permit]);
      const permit = database
        .prepare('SELECT state, ended_at FROM main.hf_permit WHERE number = ? ORDER BY seq DESC LIMIT 1')
        .get(number);
      if (permit?.['state'] !== 'gateway-in-flight')
        found({ invariant: 'I20', what: `a request left under permit ${number}, which is ${permit?.['state']}` });
      if (!url.endsWith('/push') || body === undefined) return;
      const { operations } = JSON.parse(body) as { readonly operations: readonly Operation[] };
      noteIds(database, operations);
      for (const what of sentTooEarly(database, operations)) found({ invariant: 'I17', what });
    },
    forget: () => {
      sentAs.clear();
      last.clear();
    },
  };
}

/** OB3: after a definite answer it goes out under a new id, and may be as it was: what it lacked has come. */
const wasRefused = (database: Database, requestId: string): boolean =>
  database
    .prepare(
      `SELECT 1 FROM main.hf_permit_operation WHERE request_id = ? AND outcome ->> '$.status' <> 'accepted' LIMIT 1`,
    )
    .get(requestId) !== undefined;

/** Operations whose predecessor stays behind: it waits for something, or for a person, and is not in front of them here. */
function sentTooEarly(database: Database, operations: readonly Operation[]): readonly string[] {
  const behind = database
    .prepare(
      `SELECT action_id, state, drafts FROM main.hf_outbox
       WHERE state IN ('queued', 'waiting', 'parked', 'refused', 'lost') ORDER BY seq LIMIT 1000`,
    )
    .all();
  const standing = new Map<string, string>();
  for (const row of behind) {
    standing.set(row['action_id'] as string, row['state'] as string);
    for (const { id } of JSON.parse(row['drafts'] as string) as EventDraft[]) standing.set(id, row['state'] as string);
  }
  if (standing.size === 0) return [];
  const isOwed = database.prepare('SELECT 1 FROM main.hf_obligation WHERE identity = ? AND closed_at IS NULL LIMIT 1');
  return operations.flatMap(({ requestId, actionId, events, needs = [] }) => {
    // What is owed is asked about as it was sent, whatever became of the rest (OB3).
    if (isOwed.get(requestId) !== undefined) return [];
    return [...needs, ...events.flatMap(({ prior }) => prior ?? [])].flatMap((named) => {
      const state = standing.get(named);
      return state === undefined ? [] : [`${actionId} was sent, and what it builds on, ${named}, is ${state}`];
    });
  });
}
