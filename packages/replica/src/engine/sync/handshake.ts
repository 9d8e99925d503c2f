import {
  decodeHandshakeAnswer,
  type Fault,
  type HandshakeAnswer,
  type HandshakeRequest,
  type JsonObject,
  LIMITS,
  type LogStanding,
  type Position,
  PROTOCOL,
} from '@holdfast/core';
import { finishFirstState } from './bootstrap.ts';
import type { SyncParts } from './parts.ts';
import { type Permit, WHOLE_WORKSPACE } from './permits.ts';
import { type AskedAs, exchange, recordTrouble } from './request.ts';
import { type Trouble, troubleOf } from './trouble.ts';

/**
 * One handshake for any number of logs: where does the ledger see us stand (DG5), is our state its state (P3), and who
 * are we to it. Also the last step of a bootstrap or repair: if the signature of what was fetched is equal, it becomes
 * visible in the transaction that records the answer (BS2).
 */
export type HandshakeResult =
  | { readonly done: true; readonly answer: HandshakeAnswer; readonly logs: readonly HandshakeLog[] }
  | { readonly done: false; readonly trouble: Trouble; readonly as: AskedAs }
  | { readonly done: false; readonly why: 'nothing' | 'held' | 'no-token' };

export interface HandshakeLog {
  readonly log: string;
  readonly standing: LogStanding;
  /** Whose position was named: the replica's head, or that of what is being fetched. */
  readonly of: AskedFor;
  /** What was fetched is the ledger's state at this version (`equal`), or is not (`differs`: thrown away). */
  readonly fetched: { readonly version: number; readonly signature: 'equal' | 'differs' } | null;
}

type AskedFor = 'head' | 'bootstrap' | 'repair';

interface AskedLog {
  readonly log: string;
  readonly positions: readonly Position[];
  readonly signature: string | null;
  readonly of: AskedFor;
  /** The newest version that a page of what is being fetched was read at; 0 for none. */
  readonly readAt: number;
}

/** Positions to ask about beside the head, by log. */
type Finer = ReadonlyMap<string, readonly Position[]>;

/** Each question about a changed history divides what is still open by 32; a ledger that never decides is believed then. */
const FINER_MAX = 12;

export async function handshake(
  parts: SyncParts,
  logs: readonly string[],
  patience: number,
  finer: Finer = new Map(),
  round = 0,
): Promise<HandshakeResult> {
  const exchanged = await exchange(
    parts,
    () => {
      const asked = logs.map((log) => askOf(parts, log, finer.get(log))).filter((ask) => ask !== null);
      if (asked.length === 0) return null;
      return {
        asked,
        class: 'handshake' as const,
        log: WHOLE_WORKSPACE,
        boundary: boundaryOf(asked),
        method: 'POST' as const,
        path: '/handshake',
        body: (replica) => JSON.stringify(requestOf(parts, asked, replica)),
        namesLog: false,
        identity: null,
        patience,
      };
    },
    'handshake',
  );
  if (!exchanged.started) return { done: false, why: exchanged.why };
  const { permit, answer, facts } = exchanged;
  const { asked } = exchanged.spec;
  if (answer.kind !== 'answered') {
    recordTrouble(parts, { permit, answer });
    return { done: false, trouble: troubleOf(answer), as: facts.as };
  }
  const read = decodeHandshakeAnswer(answer.body);
  const wrong = read.ok ? wrongAnswer(read.value, asked) : read.fault;
  if (!read.ok || wrong !== null) {
    const fault = wrong ?? { code: 'answer-malformed' };
    recordTrouble(parts, { permit, answer: { kind: 'unknown', fault } });
    return { done: false, trouble: { next: 'retry', fault, retryAfterMs: null }, as: facts.as };
  }
  const open = round < FINER_MAX ? stillOpen(parts, asked, read.value) : new Map<string, readonly Position[]>();
  const recorded = record(parts, { permit, asked, answer: read.value, as: facts.as, open });
  if (!recorded.done || open.size === 0) return recorded;
  const again = await handshake(parts, [...open.keys()], patience, open, round + 1);
  return again.done ? { ...again, logs: [...recorded.logs, ...again.logs] } : again;
}

/**
 * HL1: of a history that has changed, the last version that is in both, and not only the last of those that were named:
 * work between them is in the log, and nothing of it was lost.
 */
function stillOpen(parts: SyncParts, asked: readonly AskedLog[], answer: HandshakeAnswer): Finer {
  const open = new Map<string, readonly Position[]>();
  for (const standing of answer.logs) {
    const ask = asked.find(({ log }) => log === standing.log);
    if (ask?.of !== 'head' || standing.status !== 'history-changed') continue;
    const { commonVersion } = standing;
    const missing = ask.positions.map(({ version }) => version).filter((version) => version > commonVersion);
    const between = parts.state.positionsBetween(standing.log, commonVersion, Math.min(...missing));
    if (between.length > 0) open.set(standing.log, between);
  }
  return open;
}

/** Newest first. While something is being fetched, its position stands for the log. */
function askOf(parts: SyncParts, log: string, finer: readonly Position[] = []): AskedLog | null {
  const followed = parts.state.log(log);
  if (followed === undefined) return null;
  const progress = parts.state.bootstrapCursor(log);
  if (progress !== undefined) {
    const { epoch, head: version, chain, scanned, purpose, readAt } = progress;
    // BS2: below the version that a page was read at, it is a mixture, and the signature of none of the ledger's states.
    const signature = scanned && version >= readAt ? parts.state.bootstrapSignature(log) : null;
    return { log, positions: [{ epoch, version, chain }], signature, of: purpose, readAt };
  }
  const nothingYet = { log, positions: [], signature: null, readAt: 0 };
  if (followed.repairing) return { ...nothingYet, of: 'repair' };
  if (followed.stage !== 'visible') return { ...nothingYet, of: 'bootstrap' };
  const positions = parts.state.positions(log);
  return { log, positions: withFiner(positions, finer), signature: followed.signature, of: 'head', readAt: 0 };
}

/** The head, the finer ones, and what lies next to them on both sides. */
function withFiner(positions: readonly Position[], finer: readonly Position[]): readonly Position[] {
  const [highest, lowest] = [finer[0]?.version, finer.at(-1)?.version];
  const [head] = positions;
  if (head === undefined || highest === undefined || lowest === undefined) return positions;
  const above = positions.filter(({ version }) => version > highest && version < head.version);
  const next = above.reduce<Position | undefined>(
    (a, b) => (a === undefined || b.version < a.version ? b : a),
    undefined,
  );
  const below = positions.filter(({ version }) => version < lowest);
  return [head, ...(next === undefined ? [] : [next]), ...finer, ...below].slice(0, LIMITS.handshakePositionsMax);
}

/** PM7: one position per log, so that what an earlier handshake still owes closes with this one. */
const boundaryOf = (asked: readonly AskedLog[]): JsonObject =>
  Object.fromEntries(
    asked.map(({ log, positions: [first] }) => [
      log,
      first === undefined ? null : { epoch: first.epoch, version: first.version, chain: first.chain },
    ]),
  );

function requestOf(
  parts: SyncParts,
  asked: readonly AskedLog[],
  replica: HandshakeRequest['replica'],
): HandshakeRequest {
  const { app, health } = parts.settings;
  return {
    protocol: PROTOCOL,
    replica,
    ...(app === undefined ? {} : { app }),
    ...(health ? { health: healthOf(parts) } : {}),
    logs: asked.map(({ log, positions, signature }) => ({
      log,
      positions,
      ...(signature === null ? {} : { signature }),
    })),
  };
}

/** LG13: counts and an age, never content. */
function healthOf(parts: SyncParts): NonNullable<HandshakeRequest['health']> {
  const { unsent, attention, oldestUnsentAtMs } = parts.state.counts();
  if (oldestUnsentAtMs === null) return { unsent, attention };
  return { unsent, attention, oldestUnsentMs: Math.max(0, parts.platform.clock.now() - oldestUnsentAtMs) };
}

/** An answer that does not name every log exactly once is no answer. */
function wrongAnswer(answer: HandshakeAnswer, asked: readonly AskedLog[]): Fault | null {
  const named = new Set(answer.logs.map(({ log }) => log));
  const isWhole = answer.logs.length === asked.length && asked.every(({ log }) => named.has(log));
  return isWhole ? null : { code: 'answer-malformed', facts: { why: 'logs', asked: asked.length } };
}

function record(
  parts: SyncParts,
  done: {
    readonly permit: Permit;
    readonly asked: readonly AskedLog[];
    readonly answer: HandshakeAnswer;
    readonly as: AskedAs;
    /** Of these nothing is recorded yet: they are asked about once more. */
    readonly open: Finer;
  },
): HandshakeResult {
  const { permit, asked, answer, as, open } = done;
  const whole = troubleWithWhole(parts, answer);
  const logs: HandshakeLog[] = [];
  parts.write(() => {
    parts.permits.acknowledge(permit);
    if (whole !== null) return parts.journal.write('handshake', { outcome: whole.fault.code });
    for (const standing of answer.logs) {
      const ask = asked.find(({ log }) => log === standing.log);
      if (open.has(standing.log) || ask === undefined || isOvertaken(parts, ask)) continue;
      if (parts.state.log(standing.log) !== undefined) logs.push(recordLog(parts, ask, standing));
    }
    parts.journal.write('handshake', { logs: Object.fromEntries(logs.map((log) => [log.log, journalOf(log)])) });
  });
  return whole === null ? { done: true, answer, logs } : { done: false, trouble: whole, as };
}

/** AC2: another account, and nothing of what it says about logs is ours. */
function troubleWithWhole(parts: SyncParts, answer: HandshakeAnswer): Trouble | null {
  if (answer.account !== parts.state.identity.account)
    return { next: 'wait-whole', phase: 'other-account', fault: { code: 'other-account' }, isIdTaken: true };
  if (answer.protocol < PROTOCOL.min || answer.protocol > PROTOCOL.max)
    return {
      next: 'wait-whole',
      phase: 'update-needed',
      fault: { code: 'update-needed', facts: { protocol: answer.protocol } },
    };
  return null;
}

/** A person has adopted the ledger's history since it was asked where the old one stands: the choice holds (HL4). */
const isOvertaken = (parts: SyncParts, { log, of }: AskedLog): boolean =>
  of === 'head' && parts.state.log(log)?.adopting === true;

function recordLog(parts: SyncParts, asked: AskedLog, standing: LogStanding): HandshakeLog {
  const { log, of } = asked;
  const base = { log, standing, of, fetched: null };
  // BS4: the history that was being fetched is no longer the log's. Begin again; what is visible stays.
  if (of !== 'head' && standing.status === 'history-changed') {
    if (asked.positions.length > 0) parts.state.discardBootstrap(log);
    return base;
  }
  // What a repair learns of the ledger counts for the visible tables only when they are swapped.
  const isLiving = standing.status === 'ok' || standing.status === 'behind';
  if (of !== 'repair' || !isLiving) parts.state.recordStanding(standing);
  if (of === 'head' || !isLiving) return base;
  // BS4: a page was read above all that the log still has. Nothing that comes could make a state of it.
  if (standing.head.version < asked.readAt) {
    parts.state.discardBootstrap(log);
    return base;
  }
  if (standing.signature === undefined) return base;

  const progress = parts.state.bootstrapCursor(log);
  if (progress === undefined || progress.head !== asked.positions[0]?.version || asked.signature === null) return base;
  if (standing.signature === 'differs') parts.state.discardBootstrap(log);
  // A repair is swapped in by its own driver, under its permit (PM9).
  else if (of === 'bootstrap') finishFirstState(parts, log);
  return { ...base, fetched: { version: progress.head, signature: standing.signature } };
}

const journalOf = ({ standing, fetched }: HandshakeLog): JsonObject => ({
  status: standing.status,
  ...('head' in standing ? { head: standing.head.version } : {}),
  ...('signature' in standing && standing.signature !== undefined ? { signature: standing.signature } : {}),
  ...('commonVersion' in standing ? { commonVersion: standing.commonVersion } : {}),
  ...(fetched === null ? {} : { fetched: fetched.signature }),
});
