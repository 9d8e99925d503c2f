import {
  chainStart,
  type Digest,
  type HandshakeAnswer,
  type HandshakeRequest,
  type LogStanding,
  PROTOCOL,
} from '@holdfast/core';
import { type Refused, refusedBy } from './answer.ts';
import { fenceProblem } from './append.ts';
import type { ThroughOf } from './attest.ts';
import type { Actor } from './engine.ts';
import { epochOf } from './read.ts';
import type { MeetRead, MeetState, MeetVerdict, MetLog } from './store-port.ts';

/** LG12: the highest protocol version that both speak, or null. */
export function commonProtocol(range: { readonly min: number; readonly max: number }): number | null {
  const highest = Math.min(range.max, PROTOCOL.max);
  return highest >= Math.max(range.min, PROTOCOL.min) ? highest : null;
}

export const meetReadOf = ({ replica, logs }: HandshakeRequest): MeetRead => ({
  replica: replica.id,
  logs: logs.map(({ log, positions, signature }) => ({
    log,
    versions: positions.map(({ version }) => version).filter((version) => version > 0),
    signatureAt: signature === undefined ? null : (positions[0]?.version ?? null),
  })),
});

export type Met =
  | { readonly ok: false; readonly refused: Refused }
  | {
      readonly ok: true;
      readonly logs: HandshakeAnswer['logs'];
      readonly logIdentity: string | null;
      readonly raised: boolean;
    };

export interface HandshakeContext {
  readonly actor: Actor;
  readonly digest: Digest;
  readonly throughOf: ThroughOf;
  readonly at: string;
}

/**
 * Judges a handshake: fence first (LG8), then per log where its positions stand (DG5) and whether its state is ours
 * (DG2). Pure; the fence that it raises is durable when the store has written it.
 */
export function judgeHandshake(
  state: MeetState | undefined,
  request: HandshakeRequest,
  context: HandshakeContext,
): MeetVerdict<Met> {
  if (state === undefined) return { value: { ok: false, refused: refusedBy('not-found') }, write: null };
  const { replica } = request;
  const { actor } = context;
  const refused =
    fenceProblem(state.fence, { account: actor.account, generation: replica.generation, instance: replica.instance }) ??
    permitProblem(state, request);
  if (refused !== null) return { value: { ok: false, refused }, write: null };
  const standings = request.logs.map((asked) => standingOf(asked, state.logs.get(asked.log), context));
  const first = request.logs[0] === undefined ? undefined : state.logs.get(request.logs[0].log);
  return {
    value: {
      ok: true,
      logs: standings.map(({ standing }) => standing),
      logIdentity: request.logs.length === 1 ? (first?.log.identity ?? null) : null,
      raised: (state.fence?.generation ?? 0) < replica.generation,
    },
    write: {
      replica: replica.id,
      account: actor.account,
      generation: replica.generation,
      instance: replica.instance,
      at: context.at,
      app: request.app === undefined ? null : JSON.stringify(request.app),
      health: request.health === undefined ? null : JSON.stringify(request.health),
      logs: request.logs
        .map(({ log }, at) => ({ log, permit: replica.permit, proven: standings[at]?.proven ?? null }))
        .filter(({ log }) => state.logs.has(log)),
    },
  };
}

function permitProblem({ fence, logs }: MeetState, { replica }: HandshakeRequest): Refused | null {
  if (fence === undefined || fence.generation < replica.generation) return null;
  let highest = 0;
  for (const { permit } of logs.values()) highest = Math.max(highest, permit);
  return replica.permit > highest ? null : refusedBy('stale-permit', { details: { highest } });
}

type AskedLog = HandshakeRequest['logs'][number];
interface Standing {
  readonly standing: LogStanding;
  /** The highest version that the replica proved to hold (RT7). */
  readonly proven: number | null;
}

function standingOf(
  asked: AskedLog,
  met: MetLog | undefined,
  { actor, digest, throughOf }: HandshakeContext,
): Standing {
  const { log } = asked;
  // Who may not know it cannot tell it from one that is absent (LG11).
  if (met === undefined) return { standing: { log, status: 'not-allowed' }, proven: null };
  const { identity, head, chain, state, movedTo } = met.log;
  if (state === 'deleted') return { standing: { log, status: 'deleted' }, proven: null };
  const common = asked.positions.filter((position) => isIn(position, met, digest)).map(({ version }) => version);
  const facts = { log, identity, epoch: epochOf(met.log), head: throughOf(identity, head, chain) };
  const own = asked.positions[0];
  if (own !== undefined && !isIn(own, met, digest)) {
    const commonVersion = common.length === 0 ? 0 : Math.max(...common);
    return { standing: { ...facts, status: 'history-changed', commonVersion, healing: false }, proven: commonVersion };
  }
  if (state === 'sealed' && movedTo !== null)
    return { standing: { log, status: 'moved', to: movedTo }, proven: own?.version ?? null };
  const signature = compared(asked, met);
  return {
    standing: {
      ...facts,
      status: (own?.version ?? 0) === head ? 'ok' : 'behind',
      role: actor.role,
      ...(signature === null ? {} : { signature }),
    },
    proven: own?.version ?? null,
  };
}

const isIn = (
  { version, chain }: { readonly version: number; readonly chain: string },
  met: MetLog,
  digest: Digest,
): boolean => (version === 0 ? chainStart(met.log.identity, digest) : met.chains.get(version)) === chain;

const EMPTY_SIGNATURE = '0'.repeat(64);

function compared({ positions, signature }: AskedLog, met: MetLog): 'equal' | 'differs' | null {
  const own = positions[0];
  if (signature === undefined || own === undefined) return null;
  const stored = own.version === 0 ? EMPTY_SIGNATURE : met.signature;
  // Inside an operation there is no signature to compare with; a replica is never there.
  return stored === null ? null : stored === signature ? 'equal' : 'differs';
}
