import type { Clock, Logger, OperationResult } from '@holdfast/core';
import { type MaybePromise, type Refused, refusedBy } from './answer.ts';
import { type GroupOutcome, type JudgeContext, judgeGroup, type PushOutcome } from './append.ts';
import { appendReadOf } from './append-read.ts';
import type { EngineLimits, LogRef } from './engine.ts';
import { loggedError } from './logged-error.ts';
import { type ReadOperation, type ReadPush, requestIdOf, singly } from './push-request.ts';
import { isPerhapsTheirs, isRolledBack, refusedByStore } from './store-failure.ts';
import { entityKey, type LedgerStore } from './store-port.ts';

/**
 * Group commit (LG1): pushes on one log that wait at the same moment share one transaction, and with it the one sync that
 * a commit costs. Owns a bounded queue per log; nothing here is durable. At the bound a push is refused as
 * `rate-limited`, before it waits.
 */
export interface Groups<L> {
  /** `log` is what `onAppended` said of the log; null where nothing was judged. */
  submit(push: ReadPush): Promise<Submitted<L>>;
  /** Pushes that wait or are in work. */
  readonly waiting: number;
  /** Resolves when nothing waits; nothing more must be submitted. */
  drained(): Promise<void>;
}

export interface Submitted<L> {
  readonly outcome: PushOutcome;
  readonly log: L | null;
}

export interface GroupParts<L> {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** For one group: its time is the group's. */
  readonly context: () => JudgeContext;
  /** Once per group that is durable, before anybody is answered. */
  readonly onAppended: (ref: LogRef, outcome: GroupOutcome) => L | null;
}

/** So that a stream of pushes without a gap cannot hold back those that came first. */
const GATHERING_TURNS_MAX = 8;

interface Waiting<L> {
  readonly push: ReadPush;
  readonly resolve: (submitted: Submitted<L>) => void;
}

interface Queue<L> {
  readonly ref: LogRef;
  readonly waiting: Waiting<L>[];
  operations: number;
}

export function createGroups<L>(parts: GroupParts<L>): Groups<L> {
  const { clock, limits } = parts;
  const queues = new Map<string, Queue<L>>();
  const idle: (() => void)[] = [];
  let waiting = 0;

  const submit = (push: ReadPush): Promise<Submitted<L>> => {
    const key = entityKey(push.ref.workspace, push.ref.log);
    let queue = queues.get(key);
    if (queue === undefined) {
      queue = { ref: push.ref, waiting: [], operations: 0 };
      queues.set(key, queue);
      gather(key, queue, 0, 1);
    }
    if (queue.operations >= limits.groupQueueMax)
      return Promise.resolve(refusal(refusedBy('rate-limited', { retryAfterMs: 1_000 })));
    queue.operations += push.operations.length;
    waiting += 1;
    const own = queue;
    return new Promise((resolve) => own.waiting.push({ push, resolve }));
  };

  /**
   * Requests that came together are read in turns: as long as a turn brings another push, the group waits for one more.
   * Nobody waits for time to pass, and one that is alone after its turn does not wait at all.
   */
  const gather = (key: string, queue: Queue<L>, turn = 0, before = 0): void => {
    clock.soon(() => {
      const { length } = queue.waiting;
      if (turn < GATHERING_TURNS_MAX && length > before) gather(key, queue, turn + 1, length);
      else void work(key, queue);
    });
  };

  /**
   * One group, and the next one soon, so that whoever was just answered can be in it. Never rejects: what goes wrong is
   * an answer.
   */
  const work = async (key: string, queue: Queue<L>): Promise<void> => {
    const group = takeGroup(queue, limits);
    const outcomes = await outcomesOf(
      parts,
      queue.ref,
      group.map(({ push }) => push),
    );
    for (const [at, { push, resolve }] of group.entries()) {
      queue.operations -= push.operations.length;
      waiting -= 1;
      resolve(outcomes[at] as Submitted<L>);
    }
    if (queue.waiting.length > 0) {
      gather(key, queue);
      return;
    }
    queues.delete(key);
    if (queues.size === 0) for (const resolve of idle.splice(0)) resolve();
  };

  return {
    submit,
    get waiting() {
      return waiting;
    },
    drained: () => (queues.size === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve))),
  };
}

/** As many as fit, at least one. */
function takeGroup<L>(queue: Queue<L>, limits: EngineLimits): Waiting<L>[] {
  let events = 0;
  let bytes = 0;
  let count = 0;
  for (const { push } of queue.waiting) {
    events += push.events;
    bytes += push.bytes;
    if (count > 0 && (events > limits.groupEventsMax || bytes > limits.groupBytesMax)) break;
    count += 1;
  }
  return queue.waiting.splice(0, count);
}

const refusal = (refused: Refused): Submitted<never> => ({
  outcome: { kind: 'refused', refused, logIdentity: null },
  log: null,
});

/**
 * One group. If it fails unexpectedly, each push is tried alone, and of a push that fails alone each operation, so that
 * what a store stumbles over holds back nothing else. Nothing is tried again whose outcome is not known.
 */
async function outcomesOf<L>(
  parts: GroupParts<L>,
  ref: LogRef,
  pushes: readonly ReadPush[],
): Promise<readonly Submitted<L>[]> {
  let outcome: GroupOutcome;
  try {
    const appended = append(parts, ref, pushes);
    outcome = appended instanceof Promise ? await appended : appended;
  } catch (cause) {
    parts.logger('error', 'A group of appends failed.', {
      ...ref,
      pushes: pushes.length,
      error: loggedError(cause),
    });
    if (!isRolledBack(cause) || !isPerhapsTheirs(cause)) return pushes.map(() => refusal(refusedByStore(cause)));
    return oneByOne(parts, ref, pushes, refusedByStore(cause));
  }
  const log = parts.onAppended(ref, outcome);
  return outcome.pushes.map((one) => ({ outcome: one, log }));
}

function append<L>(
  { store, context }: GroupParts<L>,
  ref: LogRef,
  pushes: readonly ReadPush[],
): MaybePromise<GroupOutcome> {
  const judging = context();
  return store.append(ref, appendReadOf(pushes, judging.serials), (state) => judgeGroup(state, pushes, judging));
}

async function oneByOne<L>(
  parts: GroupParts<L>,
  ref: LogRef,
  pushes: readonly ReadPush[],
  refused: Refused,
): Promise<readonly Submitted<L>[]> {
  const submitted: Submitted<L>[] = [];
  if (pushes.length > 1) {
    for (const push of pushes) submitted.push(...(await outcomesOf(parts, ref, [push])));
    return submitted;
  }
  const push = pushes[0] as ReadPush;
  if (push.operations.length === 1) return [refusal(refused)];
  for (const single of singly(push)) submitted.push(...(await outcomesOf(parts, ref, [single])));
  return [joined(push, submitted)];
}

/** The answer to a push whose operations were tried alone. One that failed alone is refused for now, if others were judged. */
function joined<L>(push: ReadPush, submitted: readonly Submitted<L>[]): Submitted<L> {
  const judged = submitted.findLast(({ outcome }) => outcome.kind === 'judged');
  if (judged === undefined) return submitted[0] as Submitted<L>;
  const results = submitted.flatMap(({ outcome }, at): readonly OperationResult[] =>
    outcome.kind === 'judged'
      ? outcome.results
      : [{ requestId: requestIdOf(push.operations[at] as ReadOperation), status: 'refused', code: 'internal' }],
  );
  const { logIdentity } = judged.outcome as Extract<PushOutcome, { kind: 'judged' }>;
  return { outcome: { kind: 'judged', results, logIdentity }, log: judged.log };
}
