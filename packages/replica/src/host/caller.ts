import { BrokenInvariant, type CancelSignal, type Clock, type Fault, type JsonObject, LIMITS } from '@holdfast/core';
import { DatabaseFault, faultOfDatabase } from '../engine/database-fault.ts';
import { FaultError } from '../engine/fault-error.ts';
import type { LocalChange, ReplicaState } from '../engine/replica-state.ts';
import {
  type Ask,
  type AskOf,
  type Channel,
  type ChannelEvents,
  LINK_PROTOCOL,
  type RequestName,
  type Requests,
  type Tell,
  type UndoState,
} from '../link/messages.ts';
import type { Status } from '../link/status.ts';
import type { HostSync } from './host.ts';
import type { LiveQueries } from './live-queries.ts';
import type { LiveRows, Watcher } from './live-run.ts';
import type { Observe } from './observe.ts';
import type { QueryRunner } from './query-runner.ts';
import type { Waiters } from './waiters.ts';

export interface CallerParts {
  readonly events: ChannelEvents;
  readonly state: ReplicaState;
  readonly sync: HostSync;
  readonly clock: Clock;
  readonly runner: QueryRunner;
  readonly live: LiveQueries;
  readonly waiters: Waiters;
  readonly observe: Observe;
  readonly inspect: () => JsonObject;
  readonly status: () => Status;
  /** Tells every caller, in a turn to come, what can be taken back, if it is other than what he knows. */
  readonly undoIsDue: () => void;
  /** A newer host has the file, or nobody has it any more: this host must not go on. */
  readonly mustEnd: (fault: Fault) => void;
  readonly left: (caller: Caller) => void;
}

/**
 * One caller of a host: answers what he asks, each request once, and knows what is his: his live queries, his waits, his
 * own commits. Everything here is forgotten with the channel.
 */
export class Caller implements Channel, Watcher {
  readonly #parts: CallerParts;
  /** Requests that wait for something to happen, and how to end the wait. */
  readonly #waits = new Map<string, () => void>();
  /** Own commits on their way: what they changed is not foreign to their author (CM2). */
  readonly #own = new Set<string>();
  #isOpen = true;
  #commitsInTurn = 0;
  /** Told, and not said to be heard. */
  #unheard = 0;
  /** News that wait until he has heard the rest: the newest of each kind. */
  readonly #news = new Map<Tell['tell'], Tell>();
  /** What he knows can be taken back, as text. Null: what his own commit made him believe, which may be so no more. */
  #knownUndo: string | null = null;
  isVisible = true;

  /** LK3: his thread is busy, or his tab is frozen. Told of is what he asks for; the rest once, as it is then. */
  get isBehind(): boolean {
    return this.#unheard >= LIMITS.linkUnheardMax;
  }

  constructor(parts: CallerParts) {
    this.#parts = parts;
  }

  // ── the channel ───────────────────────────────────────────────────────────────────────────────────────────────────

  send(ask: Ask): void {
    if (!this.#isOpen) return;
    switch (ask.ask) {
      case 'live':
        return this.#parts.live.open(this, ask.key, ask.sql, ask.parameters);
      case 'drop':
        return this.#parts.live.drop(this, ask.key);
      case 'visible':
        this.isVisible = ask.isVisible;
        return ask.isVisible ? this.#parts.live.looked() : undefined;
      case 'heard':
        return this.#heard(ask.tells);
      case 'cancel':
        return this.#endWait(ask.id);
      default:
        return this.#answer(ask);
    }
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const end of [...this.#waits.values()]) end();
    this.#waits.clear();
    this.#parts.live.leave(this);
    this.#parts.left(this);
  }

  /** What he did not ask for. Only the newest of a kind counts. */
  news(tell: Extract<Tell, { tell: 'status' | 'undo' | 'types' | 'desk' }>): void {
    if (this.isBehind) this.#news.set(tell.tell, tell);
    else this.#tell(tell);
  }

  #tell(tell: Tell): void {
    if (!this.#isOpen) return;
    this.#unheard += 1;
    this.#news.delete(tell.tell);
    this.#parts.events.tell(tell);
  }

  #heard(tells: number): void {
    const wasBehind = this.isBehind;
    this.#unheard = Math.max(0, this.#unheard - tells);
    if (!wasBehind || this.isBehind) return;
    for (const tell of [...this.#news.values()]) this.#tell(tell);
    this.#parts.live.looked();
  }

  /**
   * As soon as whoever opened the channel has it, with what is so then. Not a turn later: the first turn of a host is full
   * of work, and an app that opens a replica waits for this.
   */
  welcome(facts: () => Omit<Extract<Tell, { tell: 'welcome' }>, 'tell' | 'protocol'>): void {
    const say = () => {
      if (!this.#isOpen) return;
      const welcome = facts();
      this.#knowsUndo(welcome.undo);
      this.#tell({ tell: 'welcome', protocol: LINK_PROTOCOL, ...welcome });
    };
    // A host whose file is gone by then has nothing to say: whoever came is told that, and looks for the next one.
    void Promise.resolve()
      .then(say)
      .catch((cause: unknown) => this.end(faultOf(cause)));
  }

  undo(undo: UndoState): void {
    if (this.#knowsUndo(undo)) this.news({ tell: 'undo', undo });
  }

  /** True: it is news to him. */
  #knowsUndo(undo: UndoState): boolean {
    const text = JSON.stringify(undo);
    if (text === this.#knownUndo) return false;
    this.#knownUndo = text;
    return true;
  }

  /** Whoever commits with a label shows it at once as what can be taken back; he is told what is so then. */
  #mayBelieve(): void {
    this.#knownUndo = null;
    this.#parts.undoIsDue();
  }

  end(fault: Fault): void {
    if (!this.#isOpen) return;
    this.#tell({ tell: 'end', fault });
    this.close();
    this.#parts.events.closed();
  }

  settled(settled: LocalChange['settled']): void {
    if (this.#own.size > 0) for (const { actionId } of settled) this.#own.delete(actionId);
  }

  // ── live queries ──────────────────────────────────────────────────────────────────────────────────────────────────

  rows(key: string, result: LiveRows): void {
    this.#tell({ tell: 'rows', key, ...result });
  }

  failing(key: string, fault: Fault): void {
    this.#tell({ tell: 'failing', key, fault });
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #answer(ask: Extract<Ask, { id: string; ask: RequestName }>): void {
    try {
      const handle = this.#handlers[ask.ask] as ((ask: AskOf<RequestName>) => unknown) | undefined;
      if (handle === undefined) throw new FaultError({ code: 'malformed', facts: { ask: ask.ask } });
      const value = handle(ask as AskOf<RequestName>);
      if (value !== LATER) this.#say(ask.id, value ?? null);
    } catch (cause) {
      this.#refuse(ask.id, faultOf(cause));
    }
  }

  #say(id: string, value: unknown): void {
    this.#tell({ tell: 'answer', id, value });
  }

  #refuse(id: string, fault: Fault): void {
    this.#tell({ tell: 'no', id, fault });
    if (fault.code === 'outranked' || fault.code === 'replica-gone') this.#parts.mustEnd(fault);
  }

  /** Whoever asked for what changes it finds it changed when he is answered. */
  #tellStatus(): void {
    this.#tell({ tell: 'status', status: this.#parts.status() });
  }

  #wait(id: string, end: () => void): typeof LATER {
    if (this.#waits.size >= LIMITS.linkRequestsMax) {
      end();
      throw new FaultError({ code: 'aborted', facts: { reason: 'too many waits', max: LIMITS.linkRequestsMax } });
    }
    this.#waits.set(id, end);
    return LATER;
  }

  #endWait(id: string): void {
    this.#waits.get(id)?.();
    this.#waits.delete(id);
  }

  readonly #handlers: Handlers = {
    commit: (ask) => this.#commit(ask),

    query: ({ sql, parameters, digest }) => {
      const { runner } = this.#parts;
      const query = runner.prepare(sql);
      const rows = query.run(parameters);
      const answer = { columns: query.columns, rows };
      return digest === true ? { ...answer, digest: runner.digestRows(rows) } : answer;
    },

    shown: ({ id }) => {
      this.#parts.live.whenShown(this, () => this.#say(id, null));
      return LATER;
    },

    ordered: ({ id, action }) => {
      let isSettled = false;
      const end = this.#parts.waiters.wait(action, (outcome) => {
        isSettled = true;
        this.#waits.delete(id);
        if (outcome.ok) this.#say(id, { version: outcome.version });
        else this.#refuse(id, outcome.fault);
      });
      return isSettled ? LATER : this.#wait(id, end);
    },

    outcome: ({ action }) => this.#parts.state.outcome(action) ?? null,

    settle: ({ id }) => {
      const cancel = createCancel();
      this.#wait(id, cancel.cancel);
      this.#parts.sync.settle(cancel.signal).then((report) => {
        this.#waits.delete(id);
        this.#tellStatus();
        this.#say(id, report);
      });
      return LATER;
    },

    desk: () => this.#parts.state.desk(),
    resolve: ({ items, choice }) => {
      const { state } = this.#parts;
      // One transaction: all of them, or none.
      state.write(() => {
        for (const { id, revision } of items)
          given(state.resolve({ ids: [id], choice, ...(revision === undefined ? {} : { revision }) }));
      });
      this.#tellStatus();
    },
    discard: ({ items }) => given(this.#parts.state.discard(items)),
    undo: ({ scope, skipChanged }) => given(this.#parts.state.undo(scope, { skipChanged })),
    redo: ({ scope }) => given(this.#parts.state.redo(scope)),
    undoState: ({ scope }) => {
      const undo = this.#parts.state.undoState(scope);
      if (scope === 'main') this.#knowsUndo(undo);
      return undo;
    },
    follow: ({ log }) => this.#parts.state.follow(log),
    unfollow: ({ log }) => this.#parts.state.unfollow(log),
    pause: () => {
      this.#parts.sync.pause();
      this.#tellStatus();
    },
    resume: () => {
      this.#parts.sync.resume();
      this.#tellStatus();
    },
    nudge: ({ why }) => (why === 'credentials' ? this.#parts.sync.credentialsChanged() : this.#parts.sync.kick(why)),
    adopt: ({ log }) => this.#parts.state.adopt(log),
    journal: ({ before }) => this.#parts.state.journal.page(before),
    history: ({ log, entity, of }) => this.#parts.state.history({ log, type: entity, id: of }),
    pack: () => this.#parts.state.pack(),
    unpack: ({ bytes }) => given(this.#parts.state.unpack(bytes)),
    progress: ({ work }) => (this.#parts.state.setting(workSetting(work)) ?? null) as never,
    facts: () => this.#parts.inspect(),
  };

  // ── commits ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #commit(ask: AskOf<'commit'>): Requests['commit']['answer'] | typeof LATER {
    const { state, runner, observe } = this.#parts;
    const { id, log, label, undo, changes, seen, reads, work } = ask;
    const request = {
      actionId: id,
      log,
      ...(label === undefined ? {} : { label }),
      ...(undo === undefined ? {} : { undo }),
      ...(work === undefined ? {} : { undoGroup: work.group }),
      changes,
      seen,
      reads,
      digestOf: runner.digestOf,
      ...(this.#own.size === 0 || seen.length === 0 ? {} : { own: [...this.#own] }),
    };
    const receipt = observe.timed(
      'commit',
      () =>
        given(
          work === undefined
            ? state.commit(request)
            : state.write(() => {
                const outcome = state.commit(request);
                // The mark and the batch it stands for are one transaction.
                if (outcome.ok && !outcome.value.repeated)
                  state.setSetting(workSetting(work.name), work.progress === null ? null : { ...work.progress });
                return outcome;
              }),
        ),
      () => ({ changes: changes.length }),
    );
    if (receipt.eventIds.length > 0) this.#remember(id);
    const answer = { seq: receipt.seq, repeated: receipt.repeated };
    if (label !== undefined) this.#mayBelieve();
    this.#commitsInTurn += 1;
    if (this.#commitsInTurn <= LIMITS.commitsPerTurnMax) return answer;
    // A loop of awaited commits never ends its turn by itself; here sync and live queries get theirs.
    this.#parts.clock.soon(() => {
      this.#commitsInTurn = 0;
      this.#say(id, answer);
      if (label !== undefined) this.#mayBelieve();
    });
    return LATER;
  }

  #remember(action: string): void {
    this.#own.add(action);
    if (this.#own.size > LIMITS.ownCommitsKept) this.#own.delete(this.#own.values().next().value as string);
  }
}

/** A signal of the engine's own, fired when the caller no longer waits. */
function createCancel() {
  const listeners = new Set<() => void>();
  let aborted = false;
  const signal: CancelSignal = {
    get aborted() {
      return aborted;
    },
    addEventListener: (_, run) => void listeners.add(run),
    removeEventListener: (_, run) => void listeners.delete(run),
  };
  const cancel = () => {
    aborted = true;
    for (const run of [...listeners]) run();
  };
  return { signal, cancel };
}

/** The answer comes later. */
const LATER = Symbol('later');

type Handlers = {
  readonly [N in RequestName]: (ask: AskOf<N>) => Requests[N]['answer'] | typeof LATER | undefined | void;
};

const workSetting = (name: string): string => `work/${name}`;

function given<T>(
  outcome: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: Fault },
): T {
  if (outcome.ok) return outcome.value;
  throw new FaultError(outcome.fault);
}

/** What went wrong, in the words of the faults. A defect is one too: it is told, and the host goes on. */
export function faultOf(cause: unknown): Fault {
  if (cause instanceof FaultError) return cause.fault;
  if (cause instanceof DatabaseFault) return faultOfDatabase(cause);
  const name = cause instanceof BrokenInvariant ? cause.name : 'Error';
  return {
    code: 'engine-fault',
    facts: { error: name, reason: cause instanceof Error ? cause.message : String(cause) },
  };
}
