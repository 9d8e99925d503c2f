import type { EventDraft, Fault, OperationResult, RecordedChange, SeenValue } from '@holdfast/core';
import { readFault, readObject } from './replica-store.ts';

/**
 * The outbox: every committed batch that is not yet confirmed and not closed by a person (OB7). A row's bytes are final;
 * only a rebase makes them again, under a new request id (OB3).
 */
export interface OutboxRow {
  readonly seq: number;
  readonly log: string;
  readonly actionId: string;
  readonly requestId: string;
  readonly state: string;
  readonly drafts: readonly EventDraft[];
  readonly frame: OutboxFrame;
  readonly identity: string;
  readonly label: string | null;
  readonly rebases: number;
  /** Answered with `version-conflict`: to be judged once the head is here. */
  readonly judgeAt: number | null;
  readonly fault: Fault | null;
  readonly heldBy: string | null;
  readonly answer: AcceptedAnswer | null;
  /** A person wants it gone (OB3). */
  readonly wish: Wish | null;
}

/** `changes` take a batch back if it was accepted; `seen` is what it left in their fields when the person said so. */
export interface Wish {
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
}

export interface OutboxFrame {
  readonly merge: 'fields' | 'author';
  readonly needs?: readonly string[];
  readonly requires?: readonly (readonly [string, string])[];
  readonly expectedLogVersion?: number;
  readonly scope?: 'log';
}

export type AcceptedAnswer = Extract<OperationResult, { status: 'accepted' }>;

export const SENT_COLUMNS =
  'seq, action_id, request_id, state, drafts, events, bytes, frame, retry_at, judge_at, held_by';
export const COLUMNS =
  'seq, log, action_id, request_id, state, drafts, frame, identity, label, rebases, judge_at, fault, held_by, answer, wish';

export const readRow = (row: Readonly<Record<string, unknown>>): OutboxRow => ({
  seq: row['seq'] as number,
  log: row['log'] as string,
  actionId: row['action_id'] as string,
  requestId: row['request_id'] as string,
  state: row['state'] as string,
  drafts: JSON.parse(row['drafts'] as string) as EventDraft[],
  frame: JSON.parse(row['frame'] as string) as OutboxFrame,
  identity: row['identity'] as string,
  label: row['label'] as string | null,
  rebases: row['rebases'] as number,
  judgeAt: row['judge_at'] as number | null,
  fault: readFault(row['fault']),
  heldBy: row['held_by'] as string | null,
  answer: readObject(row['answer']) as AcceptedAnswer | null,
  wish: readWish(row['wish'] as string | null),
});

/** A file of an earlier version holds the changes alone. */
function readWish(text: string | null): Wish | null {
  if (text === null) return null;
  const wish = JSON.parse(text) as Wish | readonly RecordedChange[];
  return 'changes' in wish ? wish : { changes: wish, seen: [] };
}

/** States whose changes are part of local state (ST1), unless held. */
export const LOCAL_STATES: ReadonlySet<string> = new Set(['queued', 'sending', 'waiting', 'accepted']);

export const FLOWING_SQL = "state IN ('queued', 'sending', 'waiting', 'accepted') AND held_by IS NULL";

/** A definite answer, or a judgement over one, is behind these (OB3). */
export const ANSWERED_STATES: ReadonlySet<string> = new Set(['accepted', 'parked', 'refused']);

export interface BatchAgain {
  readonly seq: number;
  readonly log: string;
  readonly actionId: string;
  readonly requestId: string;
  readonly draftTexts: readonly string[];
  readonly frame: OutboxFrame;
  readonly identity: string;
  readonly label: string | null;
  readonly createdAt: number;
}

/** A person's wish to have work gone, now that its answer is known. */
export interface GrantedWish {
  readonly row: OutboxRow;
  readonly isAccepted: boolean;
}

export const isLocal = (row: Pick<OutboxRow, 'state' | 'heldBy'>): boolean =>
  LOCAL_STATES.has(row.state) && row.heldBy === null;

export const keysOf = (row: Pick<OutboxRow, 'log' | 'drafts'>) => {
  const keys = new Map(
    row.drafts.map((draft) => [
      `${draft.entityType} ${draft.entityId}`,
      { log: row.log, type: draft.entityType, id: draft.entityId },
    ]),
  );
  return [...keys.values()];
};
