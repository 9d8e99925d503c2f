import {
  type Json,
  LIMITS,
  type RecordedChange,
  recordCommit,
  type Schema,
  type SeenValue,
  type Tx,
  utf8Length,
} from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { WorkProgress } from '../link/messages.ts';
import type { TransactParts } from './transact.ts';

/** One row's changes, as they were recorded. */
interface Part {
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
  readonly bytes: number;
}

/** What an event carries besides its change: ids, salt, instant. */
const FRAME_BYTES = 400;
/** Room for what a deletion brings with it. */
const EVENTS_PER_BATCH = Math.floor(LIMITS.commitEventsMax * 0.9);
const BYTES_PER_BATCH = Math.floor(LIMITS.commitBytesMax * 0.8);

/**
 * CM6: one list as many batches. How far it came is kept by the host in the transaction of each batch, under the log and
 * the label; so the same call after a crash skips what is written, and nothing is written twice.
 */
export async function commitAll<S extends Schema, R>(
  parts: Omit<TransactParts<S>, 'compile'>,
  rows: Iterable<R> | AsyncIterable<R>,
  build: (tx: Tx<S>, row: R) => void,
  how: { readonly log: string; readonly label: string; readonly undo?: false | string },
): Promise<{ readonly batches: number }> {
  const { link, ids } = parts;
  const name = `${how.log}/${how.label}`;
  const before = await link.request('progress', { work: name });
  const group = before?.group ?? ids.newId();
  let progress: WorkProgress = before ?? { rows: 0, batches: 0, group };

  const write = async (batch: readonly Part[], isLast: boolean): Promise<void> => {
    const after = { rows: progress.rows + batch.length, batches: progress.batches + 1, group };
    try {
      await link.request(
        'commit',
        {
          ...how,
          changes: batch.flatMap(({ changes }) => changes),
          seen: batch.flatMap(({ seen }) => seen),
          reads: [],
          work: { name, group, progress: isLast ? null : after },
        },
        { id: ids.newId() },
      );
      progress = after;
    } catch (cause) {
      // Deletions may bring more with them than was counted.
      const isTooLarge = cause instanceof FaultError && cause.fault.code === 'batch-too-large';
      if (!isTooLarge || batch.length === 1) throw cause;
      const middle = batch.length >> 1;
      await write(batch.slice(0, middle), false);
      await write(batch.slice(middle), isLast);
    }
  };

  let batch: Part[] = [];
  let [events, bytes, at] = [0, 0, 0];
  for await (const row of rows) {
    at += 1;
    if (at <= (before?.rows ?? 0)) continue;
    const part = record(parts, build, row);
    if (batch.length > 0 && (events + part.changes.length > EVENTS_PER_BATCH || bytes + part.bytes > BYTES_PER_BATCH)) {
      await write(batch, false);
      [batch, events, bytes] = [[], 0, 0];
    }
    batch.push(part);
    events += part.changes.length;
    bytes += part.bytes;
  }
  if (batch.length > 0 || before !== null) await write(batch, true);
  return { batches: progress.batches };
}

function record<S extends Schema, R>(
  { schema, data, ids }: Omit<TransactParts<S>, 'compile'>,
  build: (tx: Tx<S>, row: R) => void,
  row: R,
): Part {
  const recorded = recordCommit(schema, data(), ids, (tx) => build(tx, row));
  if (!recorded.ok) throw new FaultError(recorded.fault);
  const { changes, seen } = recorded.value;
  const bytes = utf8Length(JSON.stringify(changes as unknown as Json)) + changes.length * FRAME_BYTES;
  return { changes, seen, bytes };
}
