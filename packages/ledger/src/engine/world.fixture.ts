import type {
  Clock,
  EventDraft,
  Json,
  OperationResult,
  Platform,
  Position,
  PushAnswer,
  PushOperation,
} from '@holdfast/core';
import { createNodePlatform } from '../adapters/node/platform.ts';
import { listeningLogger, type Told, temporaryFolder } from '../stores/sqlite/store.fixture.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../stores/sqlite/store.ts';
import type { Answered, Refused } from './answer.ts';
import { type Author, wire } from './drafts.fixture.ts';
import { type Actor, createEngine, type Engine, type EngineConfig, type LogRef } from './engine.ts';
import type { LedgerStore } from './store-port.ts';

export const REF: LogRef = { workspace: 'acme', log: 'main' };
export const ANA: Actor = { account: 'ana', role: 'writer' };
export const BEN: Actor = { account: 'ben', role: 'writer' };
export const READER: Actor = { account: 'rob', role: 'reader' };

/** Time that a test moves; what gathers "soon" really does. */
export interface HandClock extends Clock {
  advance(ms: number): void;
}

export function handClock(): HandClock {
  let elapsedMs = 0;
  const waiting = new Set<{ readonly atMs: number; readonly run: () => void }>();
  return {
    now: () => Date.UTC(2026, 10, 30) + elapsedMs,
    monotonic: () => elapsedMs,
    timer: (ms, run) => {
      const item = { atMs: elapsedMs + ms, run };
      waiting.add(item);
      return () => waiting.delete(item);
    },
    soon: (run) => {
      setImmediate(run);
    },
    advance: (ms) => {
      const untilMs = elapsedMs + ms;
      for (;;) {
        const due = [...waiting].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (due === undefined) break;
        waiting.delete(due);
        elapsedMs = Math.max(elapsedMs, due.atMs);
        due.run();
      }
      elapsedMs = untilMs;
    },
  };
}

export interface World extends AsyncDisposable {
  readonly engine: Engine;
  readonly store: LedgerStore;
  readonly clock: HandClock;
  readonly told: readonly Told[];
  /** The head, as a replica that pulled everything knows it. */
  head(ref?: LogRef): Promise<Position>;
  start(ref?: LogRef): Promise<Position>;
  /** Pushes from the head on; the results alone. */
  push(author: Author, operations: readonly PushOperation[], actor?: Actor): Promise<readonly OperationResult[]>;
  pushed(author: Author, operations: readonly PushOperation[], position?: Position): Promise<PushAnswer>;
  send(request: unknown, actor?: Actor, ref?: LogRef): Promise<PushAnswer | Refused>;
  /** One operation of these events, accepted. */
  accept(author: Author, ...events: EventDraft[]): Promise<OperationResult & { status: 'accepted' }>;
  /** A restart: same folder, new process. */
  restart(): Promise<World>;
}

export function world(config: Partial<EngineConfig> = {}, options: Partial<SqliteStoreOptions> = {}): World {
  return onFolder(temporaryFolder(), config, options);
}

function onFolder(
  folder: ReturnType<typeof temporaryFolder>,
  config: Partial<EngineConfig>,
  options: Partial<SqliteStoreOptions>,
): World {
  const clock = handClock();
  const platform: Platform = { ...createNodePlatform(), clock };
  const { logger, told } = listeningLogger();
  const store = config.store ?? openSqliteStore({ folder: folder.path, platform, logger, ...options });
  const engine = createEngine({ platform, logger, createOnFirstUse: true, ...config, store });

  const positionAt = async (after: number, ref: LogRef): Promise<Position> => {
    const { epoch, through } = answerOf(await engine.events(ANA, ref, { after, limit: 1 }));
    return { epoch, version: through.version, chain: through.chain };
  };
  const head = (ref = REF) => positionAt(Number.MAX_SAFE_INTEGER, ref);
  let begin: Position | null = null;

  const send = async (request: unknown, actor = ANA, ref = REF): Promise<PushAnswer | Refused> => {
    const answer = await engine.push(actor, ref, wire(request));
    return answer.ok ? (JSON.parse(answer.body) as PushAnswer) : answer.refused;
  };
  const pushed = async (author: Author, operations: readonly PushOperation[], position?: Position, actor = ANA) => {
    const answer = await send(author.request(position ?? (await head()), operations), actor);
    if (!('results' in answer)) throw new Error(JSON.stringify(answer));
    return answer;
  };

  const made: World = {
    engine,
    store,
    clock,
    told,
    head,
    start: async (ref = REF) => {
      begin ??= await head(ref);
      return begin;
    },
    send,
    pushed: (author, operations, position) => pushed(author, operations, position),
    push: async (author, operations, actor) => (await pushed(author, operations, undefined, actor)).results,
    accept: async (author, ...events) => {
      const [result] = (await pushed(author, [author.operation(events)])).results;
      if (result?.status !== 'accepted') throw new Error(JSON.stringify(result));
      return result;
    },
    restart: async () => {
      await engine.close();
      return onFolder(folder, config, options);
    },
    [Symbol.asyncDispose]: async () => {
      await engine.close();
      folder.dispose();
    },
  };
  return made;
}

/** The answer as an object, or a test that fails with the refusal. */
export function answerOf<T>(answered: Answered<T>): T {
  if (!answered.ok) throw new Error(JSON.stringify(answered.refused));
  return JSON.parse(answered.body) as T;
}

export const refusalOf = (answered: Answered<unknown>): Refused => {
  if (answered.ok) throw new Error(`not refused: ${answered.body}`);
  return answered.refused;
};

export const jsonOf = (value: unknown): Json => wire(value);

/** The log as Ana reads it. */
export const eventsOf = async (w: World, after = 0) => answerOf(await w.engine.events(ANA, REF, { after })).events;
export const fieldsOf = async (w: World, id: string) =>
  answerOf(await w.engine.entity(ANA, REF, { type: 'issue', id })).entity?.fields;
