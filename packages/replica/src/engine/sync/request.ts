import { type Fault, HEADERS, LIMITS, type RequestReplica, type WireResponse } from '@holdfast/core';
import { createCancel } from './cancel.ts';
import type { SyncParts } from './parts.ts';
import type { Permit, PermitRequest, PushOutcomes } from './permits.ts';
import { SLOWEST_BYTES_PER_MS } from './settings.ts';
import { type Answer, readAnswer } from './vouch.ts';

/**
 * One upstream request under one execution permit (PM3, PM4, PM10). Transaction 1 is here: the request is chosen, its
 * permit issued and started, its operations marked. What came back is told apart by `vouch.ts`; transaction 2 is the
 * caller's, because only he knows what there is to apply.
 */
export interface RequestSpec extends Omit<PermitRequest, 'deadlineMs'> {
  readonly method: 'GET' | 'POST';
  /** Below `/v1/workspaces/<workspace>`. */
  readonly path: string;
  readonly body?: (replica: RequestReplica) => string;
  /** The route is one of a log, so a success carries its identity. */
  readonly namesLog: boolean;
  /** As we know it; null before the first contact. */
  readonly identity: string | null;
  /** Multiplies the time-out: doubled by each time-out before this attempt. */
  readonly patience: number;
}

export type Exchange<S extends RequestSpec = RequestSpec> =
  | {
      readonly started: true;
      /** What was asked, as it was chosen in transaction 1. */
      readonly spec: S;
      readonly permit: Permit;
      readonly answer: Answer;
      readonly facts: ExchangeFacts;
    }
  | {
      readonly started: false;
      /** `nothing`: there is nothing to ask. `held`: paused, closed or signed out. `no-token`: the app could not say. */
      readonly why: 'nothing' | 'held' | 'no-token';
    };

export interface ExchangeFacts {
  readonly ms: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly as: AskedAs;
}

/** As whom it was asked: by now the app may have another credential (AC1), or the file another id (RP1). */
export interface AskedAs {
  readonly token: string | undefined;
  readonly replicaId: string;
}

/** `choose` runs inside transaction 1; null means that there is nothing to ask. */
export async function exchange<S extends RequestSpec>(
  parts: SyncParts,
  choose: () => S | null,
  use: 'handshake' | 'work' = 'work',
): Promise<Exchange<S>> {
  const token = await tokenOf(parts);
  if (token === NO_TOKEN) return { started: false, why: 'no-token' };
  if (!parts.mayStart(use)) return { started: false, why: 'held' };

  const begun = parts.write(() => {
    const spec = choose();
    return spec === null ? null : { spec, permit: parts.permits.start(permitOf(parts, spec)) };
  });
  if (begun === null) return { started: false, why: 'nothing' };

  const { spec, permit } = begun;
  const startedMs = parts.platform.clock.monotonic();
  const replica = replicaOf(parts, permit.number);
  const body = spec.body?.(replica);
  const sent = await send(parts, { spec, permit, token, body });
  const facts: ExchangeFacts = {
    ms: parts.platform.clock.monotonic() - startedMs,
    sentBytes: body?.length ?? 0,
    receivedBytes: sent.bytes,
    as: { token, replicaId: replica.id },
  };
  parts.observe({ name: `sync.${spec.class}`, ms: facts.ms, outcome: sent.answer.kind, bytes: sent.bytes });
  return { started: true, spec, permit, answer: sent.answer, facts };
}

const permitOf = (parts: SyncParts, spec: RequestSpec): PermitRequest => ({
  class: spec.class,
  log: spec.log,
  boundary: spec.boundary,
  deadlineMs: Math.min(parts.settings.requestTotalMs, parts.settings.requestSilenceMs * spec.patience),
  ...(spec.operations === undefined ? {} : { operations: spec.operations }),
});

const NO_TOKEN = Symbol('no token');

/** An app that never answers must not stop the loop for ever, nor a close. */
async function tokenOf(parts: SyncParts): Promise<string | undefined | typeof NO_TOKEN> {
  const { clock } = parts.platform;
  const given = new Promise<string | undefined>((resolve) => resolve(parts.token()));
  const askedAtMs = clock.monotonic();
  let stopWaiting = () => {};
  const silent = new Promise<typeof NO_TOKEN>((resolve) => {
    const cancel = clock.timer(parts.settings.requestSilenceMs, () => resolve(NO_TOKEN));
    const id = parts.working.add(null, () => resolve(NO_TOKEN));
    stopWaiting = () => {
      cancel();
      parts.working.remove(id);
    };
  });
  try {
    return await Promise.race([given, silent]);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    parts.logger('warn', 'The token function of the app failed.', { message });
    parts.observe({ name: 'sync.token', ms: clock.monotonic() - askedAtMs, failed: true, message });
    return NO_TOKEN;
  } finally {
    stopWaiting();
  }
}

function replicaOf(parts: SyncParts, permit: number): RequestReplica {
  const { replicaId, generation, hostInstance } = parts.state.identity;
  return { id: replicaId, generation, instance: hostInstance, permit };
}

interface Sending {
  readonly spec: RequestSpec;
  readonly permit: Permit;
  readonly token: string | undefined;
  readonly body: string | undefined;
}

/** Never rejects, and settles whatever the transport does: what comes after it settled is ignored (F161). */
function send(parts: SyncParts, sending: Sending): Promise<{ readonly answer: Answer; readonly bytes: number }> {
  const { clock } = parts.platform;
  const { spec, permit } = sending;
  const cancel = createCancel();
  const limits = timeLimits(parts, sending);
  let bytes = 0;
  let hasHeaders = false;

  return new Promise((resolve) => {
    let isOver = false;
    let stopSilence = () => {};
    const over = (answer: Answer) => {
      if (isOver) return;
      isOver = true;
      stopSilence();
      stopTotal();
      parts.working.remove(workingId);
      resolve({ answer, bytes });
    };
    const giveUp = (fault: Fault) => {
      over({ kind: 'unknown', fault });
      cancel.cancel();
    };
    const listen = () => {
      stopSilence();
      stopSilence = clock.timer(limits.silenceMs, () => giveUp({ code: 'request-timeout', facts: { of: spec.class } }));
    };
    const stopTotal = clock.timer(limits.totalMs, () =>
      giveUp({ code: 'request-timeout', facts: { of: spec.class, totalMs: limits.totalMs } }),
    );
    const workingId = parts.working.add(permit, () => giveUp({ code: 'closed' }));
    listen();

    const progress = (more: number) => {
      if (isOver) return;
      bytes += more;
      listen();
      if (bytes > LIMITS.bodyBytesMax) giveUp({ code: 'answer-malformed', facts: { why: 'too-large', bytes } });
    };
    const read = async (): Promise<Answer> => {
      const response = await parts.fetch(urlOf(parts, spec.path), {
        method: spec.method,
        headers: headersOf(sending),
        signal: cancel.signal,
        progress,
        ...(sending.body === undefined ? {} : { body: sending.body }),
      });
      hasHeaders = true;
      if (!isOver) listen();
      const text = await response.text();
      bytes = Math.max(bytes, text.length);
      return readAnswer(receivedOf(response, text), {
        permit: permit.number,
        namesLog: spec.namesLog,
        identity: spec.identity,
        nowMs: clock.now(),
      });
    };
    read().then(over, (error) => over(brokenOff(error, hasHeaders)));
  });
}

/** On progress, not on the whole (F81); a large body is given the time that the slowest link needs to carry it. */
function timeLimits(parts: SyncParts, { spec, body }: Sending): { silenceMs: number; totalMs: number } {
  const { requestSilenceMs, requestTotalMs } = parts.settings;
  const sendingMs = (body?.length ?? 0) / SLOWEST_BYTES_PER_MS;
  return {
    silenceMs: Math.min(requestTotalMs, (requestSilenceMs + sendingMs) * spec.patience),
    totalMs: requestTotalMs,
  };
}

function brokenOff(error: unknown, hasHeaders: boolean): Answer {
  const isProof = typeof error === 'object' && error !== null && 'noByteLeft' in error && error.noByteLeft === true;
  const fault: Fault = { code: 'ledger-unreachable' };
  return isProof && !hasHeaders ? { kind: 'never-sent', fault } : { kind: 'unknown', fault };
}

const receivedOf = (response: WireResponse, text: string) => ({
  status: response.status,
  redirected: response.redirected === true,
  header: (name: string) => response.headers.get(name),
  text,
});

export const urlOf = (parts: Pick<SyncParts, 'ledgerUrl' | 'workspace'>, path: string): string =>
  `${parts.ledgerUrl}/v1/workspaces/${encodeURIComponent(parts.workspace)}${path}`;

function headersOf({ permit, token, body }: Sending): Record<string, string> {
  return {
    accept: 'application/json',
    [HEADERS.permit]: String(permit.number),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
  };
}

/** Transaction 2 where there is nothing to apply. `also` runs in it: what the answer means for the outbox. */
export function recordTrouble(
  parts: SyncParts,
  done: { readonly permit: Permit; readonly answer: Exclude<Answer, { kind: 'answered' }> },
  also: () => void = () => {},
): void {
  const { permit, answer } = done;
  parts.write(() => {
    if (answer.kind === 'refused') parts.permits.reject(permit, also);
    else {
      if (answer.kind === 'never-sent') parts.permits.neverSent(permit);
      else parts.permits.owe(permit);
      also();
    }
    const code = answer.kind === 'refused' ? answer.refusal.code : answer.fault.code;
    parts.journal.write(permit.class, { log: permit.log, outcome: answer.kind, code });
  });
}

/**
 * Transaction 2 of an answer. PM5: if the work fails, all of it is undone, and what the ledger may have accepted is owed,
 * in a transaction of its own; `undone` runs in that one. The error goes on to the loop's supervision.
 */
export function recordAnswer(
  parts: SyncParts,
  answered: { readonly permit: Permit; readonly outcomes?: PushOutcomes },
  apply: () => void,
  undone: (fault: Fault) => void = () => {},
): void {
  const { permit, outcomes = [] } = answered;
  try {
    parts.write(() => parts.permits.apply(permit, outcomes, apply));
  } catch (error) {
    parts.write(() => {
      parts.permits.oweAnswered(permit, outcomes);
      undone({ code: 'apply-not-committed' });
    });
    throw error;
  }
}
