import {
  chainStart,
  decodeHandshakeRequest,
  type HandshakeAnswer,
  type HandshakeRequest,
  isAddressName,
  type Json,
  LIMITS,
  PROTOCOL,
  type PushAnswer,
  randomHex,
} from '@holdfast/core';
import {
  type Answered,
  andThen,
  type JsonText,
  type MaybePromise,
  type Refused,
  refusedBy,
  type Vouch,
} from './answer.ts';
import type { GroupOutcome, JudgeContext } from './append.ts';
import { throughWith } from './attest.ts';
import type { Engine, EngineConfig, EngineLimits, LogFacts, LogRef, ReplicaFacts } from './engine.ts';
import { type Channel, createFanOut } from './fan-out.ts';
import { createGroups } from './group.ts';
import { commonProtocol, judgeHandshake, type Met, meetReadOf } from './handshake.ts';
import { createLive } from './live.ts';
import { loggedError } from './logged-error.ts';
import { nameProblem, refusedName } from './names.ts';
import { createProven } from './proven.ts';
import { pushAnswer } from './push-answer.ts';
import { readPush } from './push-request.ts';
import { createReader, epochOf, type ReadAnswer } from './read.ts';
import { serialFieldsOf } from './serials.ts';
import { refusedByStore } from './store-failure.ts';
import { entityKey, type LogRow, type NewLog, type ReplicaRow } from './store-port.ts';
import { verifyLog } from './verify.ts';

export const ENGINE_LIMITS: EngineLimits = {
  commitEventsMax: LIMITS.commitEventsMax,
  commitBytesMax: LIMITS.commitBytesMax,
  groupQueueMax: 4_096,
  groupEventsMax: 4_096,
  groupBytesMax: 8 * 1024 * 1024,
  pageCacheBytesMax: 32 * 1024 * 1024,
  socketsPerAccountMax: 200,
  pingMs: 25_000,
  accessCheckMs: 4_000,
};

/** What a ledger of this version does beyond the least (LG12). */
const CAPABILITIES: readonly string[] = ['live', 'merge-fields', 'run-time-types'];
const EMPTY_SIGNATURE = '0'.repeat(64);
/** Logs remembered as existing (`createOnFirstUse`). */
const SEEN_MAX = 10_000;
const NOBODY: Vouch = { logIdentity: null, permit: null };

/**
 * The engine's composition: every call passes here for role, existence and the translation of a failing store; what is
 * decided is in the files beside it. Owns groups, tails, sockets and caches, all of them derived from the store.
 */
export function createEngine(config: EngineConfig): Engine {
  const { store, platform, logger } = config;
  const { clock, random, digest } = platform;
  const limits: EngineLimits = { ...ENGINE_LIMITS, ...config.limits };
  const throughOf = throughWith(digest, config.logKey);
  const serials = serialFieldsOf(config.schema);
  const reader = createReader({ store, throughOf, cacheBytesMax: limits.pageCacheBytesMax });
  const fanOut = createFanOut({ reader, throughOf, logger });
  const proven = createProven({ store, clock, logger });
  const live = createLive({ store, reader, fanOut, proven, clock, random, digest, limits, logger });
  const counts = { groups: 0, operations: 0, events: 0 };
  let isClosing = false;

  const now = (): string => new Date(clock.now()).toISOString();

  const groups = createGroups<Channel>({
    store,
    clock,
    logger,
    limits,
    context: (): JudgeContext => ({
      digest,
      logger,
      recordedAt: now(),
      serials,
      limits,
      admit: config.admit,
      quota: config.quota,
    }),
    onAppended: (ref, outcome) => appended(ref, outcome),
  });

  const appended = (ref: LogRef, { log, accepted, raised }: GroupOutcome): Channel | null => {
    for (const { replica, generation } of raised) live.outranked(ref.workspace, replica, generation);
    if (log === undefined) return null;
    if (accepted.length > 0) {
      counts.groups += 1;
      counts.operations += accepted.length;
      for (const { row } of accepted) counts.events += row.count;
    }
    return fanOut.appended(ref, log, accepted);
  };

  const stopWatching = store.watch?.((hint) => {
    if (hint.kind === 'appended') void fanOut.appendedElsewhere(hint.ref);
    else live.outranked(hint.workspace, hint.replica, hint.generation);
  });

  // ── what every call does ──────────────────────────────────────────────────────────────────────────────────────────

  const refuse = <T>(refused: Refused, vouch: Partial<Vouch> = {}): Answered<T> => ({
    ok: false,
    refused,
    ...NOBODY,
    ...vouch,
  });

  /** A store that fails is an answer. */
  const answering = <T>(
    run: () => MaybePromise<Answered<T>>,
    vouch: Partial<Vouch> = {},
  ): MaybePromise<Answered<T>> => {
    if (isClosing) return refuse(refusedBy('shutting-down', { retryAfterMs: 1_000 }), vouch);
    const failed = (cause: unknown): Answered<T> => {
      logger('error', 'A request failed.', {
        error: loggedError(cause),
      });
      return refuse(refusedByStore(cause), vouch);
    };
    try {
      const answer = run();
      return answer instanceof Promise ? answer.catch(failed) : answer;
    } catch (cause) {
      return failed(cause);
    }
  };

  const newLog = (): NewLog => {
    const identity = randomHex(random, 32);
    return {
      identity,
      epoch: randomHex(random, 16),
      chain: chainStart(identity, digest),
      signature: EMPTY_SIGNATURE,
      createdAt: now(),
    };
  };

  /** In development, what is named is there. Logs that were seen are not looked for again; they do not go away. */
  const seen = new Set<string>();
  const existing = (ref: LogRef): MaybePromise<unknown> => {
    if (config.createOnFirstUse !== true || nameProblem(ref) !== null) return undefined;
    const key = entityKey(ref.workspace, ref.log);
    if (seen.has(key)) return undefined;
    const made = andThen(store.log(ref), (log): MaybePromise<unknown> => {
      if (log !== undefined) return undefined;
      return andThen(store.createWorkspace(ref.workspace, newLog()), () =>
        ref.log === 'main' ? undefined : store.createLog(ref, newLog()),
      );
    });
    return andThen(made, () => {
      if (seen.size >= SEEN_MAX) seen.clear();
      seen.add(key);
    });
  };

  const reading = <T>(ref: LogRef, read: () => MaybePromise<ReadAnswer<T> | null>): MaybePromise<Answered<T>> =>
    answering(() =>
      andThen(existing(ref), () =>
        andThen(read(), (answer): Answered<T> => {
          if (answer === null) return refuse(refusedBy('malformed', { details: { path: 'cursor' } }));
          if (answer === undefined) return refuse(refusedBy('not-found'));
          const { log, body } = answer;
          if (log.state === 'deleted') return refuse(refusedBy('deleted'), { logIdentity: log.identity });
          return { ok: true, body, logIdentity: log.identity, permit: null };
        }),
      ),
    );

  const json = <T>(value: T): JsonText<T> => JSON.stringify(value);

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const push: Engine['push'] = (actor, ref, body) => {
    const read = readPush(actor, ref, body, digest);
    const vouch = { permit: read.ok ? read.value.replica.permit : null };
    return answering<PushAnswer>(() => {
      if (actor.role === 'reader') return refuse(refusedBy('not-allowed'), vouch);
      if (!read.ok)
        return refuse(refusedBy('malformed', { details: { ...read.fault.facts } as Record<string, Json> }), vouch);
      return andThen(existing(ref), async (): Promise<Answered<PushAnswer>> => {
        const { outcome, log } = await groups.submit(read.value);
        const known = { ...vouch, logIdentity: outcome.logIdentity };
        if (outcome.kind === 'refused' || log === null)
          return refuse(outcome.kind === 'refused' ? outcome.refused : refusedBy('internal'), known);
        const answer = pushAnswer(read.value, outcome.results, log, { store, throughOf });
        return { ok: true, body: answer instanceof Promise ? await answer : answer, ...NOBODY, ...known };
      });
    }, vouch);
  };

  const handshake: Engine['handshake'] = (actor, workspace, body) => {
    const decoded = decodeHandshakeRequest(body);
    if (!decoded.ok)
      return refuse(refusedBy('malformed', { details: { ...decoded.fault.facts } as Record<string, Json> }));
    const request: HandshakeRequest = decoded.value;
    const vouch = { permit: request.replica.permit };
    return answering<HandshakeAnswer>(() => {
      const protocol = commonProtocol(request.protocol);
      if (protocol === null) return refuse(refusedBy('update-needed', { details: { ...PROTOCOL } }), vouch);
      const at = now();
      const made = request.logs.reduce<MaybePromise<unknown>>(
        (before, { log }) => andThen(before, () => existing({ workspace, log })),
        existing({ workspace, log: 'main' }),
      );
      const met = andThen(made, () =>
        store.meet(workspace, meetReadOf(request), (state) =>
          judgeHandshake(state, request, { actor, digest, throughOf, at }),
        ),
      );
      return andThen(met, (judged: Met): Answered<HandshakeAnswer> => {
        if (!judged.ok) return refuse(judged.refused, vouch);
        if (judged.raised) live.outranked(workspace, request.replica.id, request.replica.generation);
        const { limits: published, capabilities, serverTime } = describe();
        const answer: HandshakeAnswer = {
          protocol,
          account: actor.account,
          capabilities,
          limits: published,
          serverTime,
          logs: judged.logs,
        };
        return { ok: true, body: json(answer), logIdentity: judged.logIdentity, permit: request.replica.permit };
      });
    }, vouch);
  };

  const describe: Engine['describe'] = () => ({
    protocol: PROTOCOL,
    capabilities: CAPABILITIES,
    limits: published(limits),
    serverTime: now(),
  });

  return {
    describe,
    handshake,
    push,
    events: (_actor, ref, query) => reading(ref, () => reader.events(ref, query)),
    entities: (_actor, ref, query) => reading(ref, () => reader.entities(ref, query)),
    entity: (_actor, ref, query) => reading(ref, () => reader.entity(ref, query)),
    history: (_actor, ref, query) => reading(ref, () => reader.history(ref, query)),

    workspaces: () => store.workspaces(),
    createWorkspace: (workspace) => (isAddressName(workspace) ? store.createWorkspace(workspace, newLog()) : false),
    createLog: (actor, ref) =>
      answering<LogFacts>(() => {
        if (actor.role !== 'administrator') return refuse(refusedBy('not-allowed'));
        if (!isAddressName(ref.log)) return refuse(refusedName('log'));
        return andThen(store.createLog(ref, newLog()), () =>
          andThen(
            store.log(ref),
            (log): Answered<LogFacts> =>
              log === undefined
                ? refuse(refusedBy('not-found'))
                : { ok: true, body: json(logFacts(log)), logIdentity: log.identity, permit: null },
          ),
        );
      }),
    logs: (_actor, workspace) =>
      answering<{ readonly logs: readonly LogFacts[] }>(() =>
        andThen(existing({ workspace, log: 'main' }), () =>
          andThen(store.logs(workspace), (logs) =>
            logs === undefined
              ? refuse<{ readonly logs: readonly LogFacts[] }>(refusedBy('not-found'))
              : { ok: true, body: json({ logs: logs.map(logFacts) }), ...NOBODY },
          ),
        ),
      ),
    replicas: (_actor, workspace) =>
      answering<{ readonly replicas: readonly ReplicaFacts[] }>(() =>
        andThen(store.replicas(workspace), (replicas) =>
          replicas === undefined
            ? refuse<{ readonly replicas: readonly ReplicaFacts[] }>(refusedBy('not-found'))
            : { ok: true, body: json({ replicas: replicas.map(replicaFacts) }), ...NOBODY },
        ),
      ),

    live: (workspace, socket, access) => live.connect(workspace, socket, access),

    status: () =>
      andThen(store.workspaces(), (workspaces) => ({
        workspaces: workspaces.length,
        sockets: live.sockets,
        subscriptions: fanOut.subscriptions,
        waiting: groups.waiting,
        appended: { ...counts },
      })),
    usage: (workspace) =>
      andThen(store.usage(workspace), (rows) =>
        (rows ?? []).map(({ log, ...usage }) => ({ ...logFacts(log), ...usage })),
      ),
    verify: (ref) => verifyLog(store, ref, digest),

    close: async () => {
      if (isClosing) return;
      isClosing = true;
      live.close();
      await groups.drained();
      await proven.flush();
      stopWatching?.();
      await store.close();
    },
  };
}

const logFacts = (log: LogRow): LogFacts => ({
  log: log.log,
  identity: log.identity,
  epoch: epochOf(log),
  head: log.head,
  state: log.state,
  createdAt: log.createdAt,
});

const replicaFacts = ({ app, health, instance: _instance, ...row }: ReplicaRow): ReplicaFacts => ({
  ...row,
  app: app === null ? null : (JSON.parse(app) as ReplicaFacts['app']),
  health: health === null ? null : (JSON.parse(health) as ReplicaFacts['health']),
});

/** LG6: what a client cuts its requests by. */
const published = ({ commitEventsMax, commitBytesMax, pingMs }: EngineLimits): Readonly<Record<string, number>> => ({
  eventBytesMax: LIMITS.eventBytesMax,
  entityBytesMax: LIMITS.entityBytesMax,
  fieldsPerEntityMax: LIMITS.fieldsPerEntityMax,
  commitEventsMax,
  commitBytesMax,
  pageEventsMax: LIMITS.pageEventsMax,
  pageBytesMax: LIMITS.pageBytesMax,
  bodyBytesMax: LIMITS.bodyBytesMax,
  needsMax: LIMITS.needsMax,
  requiresMax: LIMITS.requiresMax,
  handshakePositionsMax: LIMITS.handshakePositionsMax,
  handshakeLogsMax: LIMITS.handshakeLogsMax,
  socketCatchUpEventsMax: LIMITS.socketCatchUpEventsMax,
  socketWindowBytesMax: LIMITS.socketWindowBytesMax,
  runTimeTypesMax: LIMITS.runTimeTypesMax,
  pingMs,
});
