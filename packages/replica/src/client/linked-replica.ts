import {
  addressNameProblem,
  type Id,
  isAddressName,
  type JsonObject,
  LIMITS,
  type Platform,
  RUN_TIME_TYPE,
  recordCommit,
  type Schema,
  type SchemaData,
  type StoredEvent,
  type Tx,
} from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { DeskEntry } from '../engine/replica-state.ts';
import type { Link, WaitSignal } from '../link/link.ts';
import type { JournalEntry, RequestName, Requests, RunTimeTypesByName, UndoState } from '../link/messages.ts';
import type { Status } from '../link/status.ts';
import { type CallerIds, callerIds } from './caller-ids.ts';
import { commitAll } from './commit-all.ts';
import { isHoldfastError, publicError, told } from './holdfast-error.ts';
import { createLiveRegistry, type Live, type LiveRegistry } from './live.ts';
import { type CompileQuery, createQueryCompiler, type Query } from './query-compiler.ts';
import type {
  CommitOptions,
  Desk,
  DeskItem,
  NotAPromise,
  ReadTx,
  Replica,
  ScopedUndo,
  Settled,
  Subject,
  Undo,
} from './replica.ts';
import { rowMaker } from './rows.ts';
import { createSubject, type WritableSubject } from './subject.ts';
import { type TransactParts, transact } from './transact.ts';
import { type Durable, type EarlierWrite, earlierWrite, LinkedWrite, type Write } from './write.ts';

export interface LinkedReplicaParts<S extends Schema> {
  readonly link: Link;
  readonly schema: S;
  readonly data: SchemaData;
  /** Types at run time, as far as the host has told of them. */
  readonly types: RunTimeTypesByName;
  readonly platform: Platform;
  readonly workspace: string;
  readonly account: string;
  /** Before the host has said anything. */
  readonly status: Status;
  /** Lets the host go, once; resolves when it has ended if this was the last use. */
  readonly release: () => Promise<void>;
}

/** The public replica: a client of a host over a link, wherever the host runs. Holds nothing that must survive. */
export class LinkedReplica<S extends Schema> implements Replica<S> {
  readonly workspace: string;
  readonly account: string;
  readonly status: Subject<Status>;
  readonly desk: Desk;
  readonly undo: Undo;
  readonly #parts: LinkedReplicaParts<S>;
  readonly #link: Link;
  readonly #ids: CallerIds;
  /** The schema, and the types at run time that the host has told of. */
  #data: SchemaData;
  #compile: CompileQuery<S>;
  readonly #lives: LiveRegistry;
  readonly #undo: WritableSubject<UndoState>;
  #closing: Promise<void> | null = null;

  constructor(parts: LinkedReplicaParts<S>) {
    const { link, platform } = parts;
    this.#parts = parts;
    this.#link = link;
    this.workspace = parts.workspace;
    this.account = parts.account;
    this.#ids = callerIds(platform);
    this.#data = withTypes(parts.data, parts.types);
    this.#compile = createQueryCompiler<S>(this.#data);
    this.#lives = createLiveRegistry(link, platform.clock);
    const status = createSubject(parts.status, platform.clock);
    this.#undo = createSubject<UndoState>({ can: false, canRedo: false }, platform.clock);
    const desk = createSubject<null>(null, platform.clock);
    this.status = status;
    this.desk = this.#deskOf(desk);
    this.undo = this.#undoOf();
    link.listen({
      welcome: (told) => {
        status.set(told.status);
        this.#undo.set(told.undo);
        this.#knowTypes(told.types);
        // What the host before this one never got to tell.
        desk.set(null);
      },
      types: (types) => this.#knowTypes(types),
      status: (now) => status.set(now),
      undo: (now) => this.#undo.set(now),
      desk: () => desk.set(null),
      lost: (fault) => status.set({ ...status.current, phase: 'no-owner', reason: fault.code }),
      ended: (fault) => status.set({ ...status.current, phase: 'stopped', reason: fault.code }),
    });
    link.start();
  }

  #knowTypes(types: RunTimeTypesByName): void {
    this.#data = withTypes(this.#parts.data, types);
    this.#compile = createQueryCompiler<S>(this.#data);
  }

  // ── writes ────────────────────────────────────────────────────────────────────────────────────────────────────────

  commit<T>(build: (tx: Tx<S>) => T & NotAPromise<T>, o: CommitOptions = {}): Write<T> {
    const id = this.#ids.newId();
    return new LinkedWrite<T>(this.#link, id, told(this.#commit(id, build, o)));
  }

  async #commit<T>(id: string, build: (tx: Tx<S>) => T, o: CommitOptions): Promise<Durable<T>> {
    const recorded = recordCommit<S, T>(this.#parts.schema, this.#data, this.#ids, build);
    if (!recorded.ok) throw new FaultError(recorded.fault);
    const { changes, seen, result } = recorded.value;
    const { seq } = await this.#link.request('commit', { ...commitOptions(o), changes, seen, reads: [] }, { id });
    // The host tells it too, soon; whoever awaited the commit may look at once.
    const isUndoable = changes.some(({ entity }) => entity !== RUN_TIME_TYPE);
    if (o.label !== undefined && o.undo === undefined && isUndoable)
      this.#undo.set({ can: true, label: o.label, canRedo: false });
    return { seq, result };
  }

  transact<T>(run: (tx: ReadTx<S>) => Promise<T>, o: CommitOptions = {}): Write<T> {
    const id = this.#ids.newId();
    return new LinkedWrite<T>(this.#link, id, told(transact(this.#transactParts, run, { id, ...commitOptions(o) })));
  }

  commitAll<R>(
    rows: Iterable<R> | AsyncIterable<R>,
    build: (tx: Tx<S>, row: R) => void,
    o: CommitOptions & { readonly label: string },
  ): Promise<{ readonly batches: number }> {
    return told(commitAll(this.#transactParts, rows, build, { ...commitOptions(o), label: o.label }));
  }

  get #transactParts(): TransactParts<S> {
    const data = () => this.#data;
    const compile: CompileQuery<S> = (query) => this.#compile(query);
    return { link: this.#link, schema: this.#parts.schema, data, ids: this.#ids, compile };
  }

  async write(id: string): Promise<EarlierWrite | undefined> {
    const outcome = await this.#ask('outcome', { action: id });
    return outcome === null ? undefined : earlierWrite(this.#link, id, outcome.state);
  }

  // ── reads ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  query<O>(query: Query<S, O>): Promise<O[]> {
    return told(this.#query(query));
  }

  async first<O>(query: Query<S, O>): Promise<O | undefined> {
    return (await this.query(query))[0];
  }

  async #query<O>(query: Query<S, O>): Promise<O[]> {
    const { columns, rows } = await this.#link.request('query', this.#compile(query));
    return rows.map(rowMaker<O>(columns));
  }

  live<O>(query: Query<S, O>): Live<O> {
    return this.#lives.open<O>(this.#compile(query));
  }

  // ── the replica ───────────────────────────────────────────────────────────────────────────────────────────────────

  async settle(o: { readonly signal?: WaitSignal } = {}): Promise<Settled> {
    const report = await told(this.#link.request('settle', {}, o.signal === undefined ? {} : { signal: o.signal }));
    const { settled, attention, obstacles } = report;
    return { settled, attention, obstacles: obstacles.map(({ log, fault }) => ({ log, code: fault.code })) };
  }

  async follow(log: string): Promise<void> {
    if (!isAddressName(log)) throw publicError(new FaultError({ code: 'malformed', facts: addressNameProblem('log') }));
    await this.#ask('follow', { log });
  }
  async unfollow(log: string): Promise<void> {
    await this.#ask('unfollow', { log });
  }
  async pause(): Promise<void> {
    await this.#ask('pause', {});
  }
  async resume(): Promise<void> {
    await this.#ask('resume', {});
  }
  async sync(why: 'online' | 'visible' | 'manual' = 'manual'): Promise<void> {
    await this.#ask('nudge', { why });
  }
  async adopt(log: string): Promise<void> {
    await this.#ask('adopt', { log });
  }
  journal(before?: number): Promise<readonly JournalEntry[]> {
    return this.#ask('journal', before === undefined ? {} : { before });
  }
  history<E extends keyof S & string>(
    entity: E,
    id: Id<E>,
    o: { readonly log?: string } = {},
  ): Promise<readonly StoredEvent[]> {
    return this.historyNamed(entity, id, o);
  }
  async historyNamed(entity: string, id: Id, o: { readonly log?: string } = {}): Promise<readonly StoredEvent[]> {
    const events = await this.#ask('history', { log: o.log ?? 'main', entity, of: id });
    return events.filter((event): event is StoredEvent => !('erased' in event));
  }
  pack(): Promise<Uint8Array> {
    return this.#ask('pack', {});
  }
  async unpack(bytes: Uint8Array): Promise<{ readonly batches: number; readonly already: number }> {
    const packs = packsIn(bytes);
    let sum = { batches: 0, already: 0 };
    for (const pack of packs) {
      try {
        const taken = await this.#ask('unpack', { bytes: pack });
        sum = { batches: sum.batches + taken.batches, already: sum.already + taken.already };
      } catch (cause) {
        // What signing out exports holds a pack for each workspace; the others are not ours.
        if (packs.length === 1 || !isHoldfastError(cause, 'other-account')) throw cause;
      }
    }
    return sum;
  }
  facts(): Promise<JsonObject> {
    return this.#ask('facts', {});
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#link.close();
      await this.#parts.release();
    })();
    return this.#closing;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ask<N extends RequestName>(name: N, send: Requests[N]['send']): Promise<Requests[N]['answer']> {
    return told(this.#link.request(name, send));
  }

  // ── desk and undo ─────────────────────────────────────────────────────────────────────────────────────────────────

  #deskOf(changed: Subject<null>): Desk {
    /** What was shown last, so that nobody decides about something else than he saw (OB6). */
    const revisions = new Map<string, number>();
    const listOf = (ids: string | readonly string[]) => (typeof ids === 'string' ? [ids] : ids);
    return {
      list: async () => {
        const entries = await this.#ask('desk', {});
        revisions.clear();
        for (const { id, revision } of entries.slice(0, LIMITS.deskListedMax)) revisions.set(id, revision);
        return entries.map(deskItem);
      },
      resolve: async (ids, choice) => {
        const items = listOf(ids).map((id) => {
          const revision = revisions.get(id);
          return revision === undefined ? { id } : { id, revision };
        });
        await this.#ask('resolve', { items, choice: choice as 'mine' | 'theirs' | JsonObject });
      },
      discard: (ids) => this.#ask('discard', { items: listOf(ids) }),
      subscribe: (run) => changed.subscribe(run),
    };
  }

  #undoOf(): Undo {
    const state = this.#undo;
    const ask = async (name: 'undo' | 'redo', skipChanged: boolean) => {
      if (name === 'undo') await this.#ask('undo', { scope: 'main', skipChanged });
      else await this.#ask('redo', { scope: 'main' });
      state.set(await this.#ask('undoState', { scope: 'main' }));
    };
    const scoped = (scope: string): ScopedUndo => ({
      state: () => this.#ask('undoState', { scope }),
      undo: async (o) => void (await this.#ask('undo', { scope, skipChanged: o?.skipChanged === true })),
      redo: async () => void (await this.#ask('redo', { scope })),
    });
    return {
      get can() {
        return state.current.can;
      },
      get label() {
        return state.current.label as string;
      },
      get canRedo() {
        return state.current.canRedo;
      },
      get redoLabel() {
        return state.current.redoLabel as string;
      },
      undo: (o) => ask('undo', o?.skipChanged === true),
      redo: () => ask('redo', false),
      in: scoped,
      subscribe: (run) => state.subscribe(run),
    };
  }
}

const withTypes = ({ format, entities }: SchemaData, types: RunTimeTypesByName): SchemaData => ({
  format,
  entities: { ...types, ...entities },
});

/** A pack is two lines: its seal, and what is sealed. */
function packsIn(bytes: Uint8Array): readonly Uint8Array[] {
  const packs: Uint8Array[] = [];
  let begin = 0;
  while (begin < bytes.byteLength) {
    const seal = bytes.indexOf(NEWLINE, begin);
    const body = seal < 0 ? -1 : bytes.indexOf(NEWLINE, seal + 1);
    const end = body < 0 ? bytes.byteLength : body + 1;
    packs.push(bytes.subarray(begin, end));
    begin = end;
  }
  return packs.length === 0 ? [bytes] : packs;
}
const NEWLINE = 10;

const commitOptions = ({ log = 'main', label, undo }: CommitOptions) => ({
  log,
  ...(label === undefined ? {} : { label }),
  ...(undo === undefined ? {} : { undo }),
});

const deskItem = (entry: DeskEntry): DeskItem => ({
  id: entry.id,
  kind: entry.kind,
  needs: entry.needs,
  ...(entry.label === undefined ? {} : { label: entry.label }),
  write: entry.actionId,
  log: entry.log,
  entity: entry.entity,
  fields: entry.fields.map((one) => ({ ...one, base: one.base, mine: one.mine, theirs: one.theirs })),
  ...(entry.fault === undefined ? {} : { code: entry.fault.code }),
  ...(entry.fault?.facts === undefined ? {} : { facts: entry.fault.facts }),
  held: entry.held,
});
