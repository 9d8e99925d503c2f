import { type Clock, LIMITS, schemaData } from '@holdfast/core';
import type { SeededRandom, VirtualTime } from '@holdfast/replica/testing';
import type { EngineDevice } from '@holdfast/replica/testing/engine';
import { LinkedReplica } from '../../packages/replica/src/client/linked-replica.ts';
import type { Live } from '../../packages/replica/src/client/live.ts';
import type { DeskItem } from '../../packages/replica/src/client/replica.ts';
import { type Host, openHost } from '../../packages/replica/src/host/host.ts';
import { Link } from '../../packages/replica/src/link/link.ts';
import type { OpenChannel } from '../../packages/replica/src/link/messages.ts';
import { openPortChannel, servePort } from '../../packages/replica/src/link/port.ts';
import type { Status } from '../../packages/replica/src/link/status.ts';
import type { SimulatedDevice } from './device.ts';
import { worldDigest } from './digest.ts';
import { createPortPair, type PortPair } from './port.ts';
import { clockOn, createThread, type Thread } from './thread.ts';
import type { WorldSchema } from './world.ts';

/** One life of a tab: the public client on a link, over a message port to whatever host its device runs at the moment. */
export interface Page {
  readonly link: Link;
  readonly replica: LinkedReplica<WorldSchema>;
  /** What it shows, as far as it was told. */
  readonly notes: Live<ShownNote>;
  /** As it was listed last: at first, and whenever it was told that the desk is another. Null: never yet. */
  readonly desk: readonly DeskItem[] | null;
  /** What a person asked for here, and nobody has answered. */
  readonly waiting: Set<string>;
  /** The engines whose host has welcomed it, as long as it has heard nothing else. */
  readonly servedBy: EngineDevice | null;
  readonly thread: Thread;
  /** Its timers, which wait while it is frozen. */
  readonly clock: Clock;
  /** LK3: told without having been asked for, since it heard anything last. */
  readonly unheard: number;
  close(): void;
}

export interface ShownNote {
  readonly id: string;
  readonly title: string;
  readonly votes: number;
}

export interface PageParts {
  readonly device: SimulatedDevice<WorldSchema>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly schema: WorldSchema;
}

const REOPEN_MS = [10, 100, 1_000, 5_000, 5_000, 5_000];
/** What a host tells by itself. */
const UNASKED: ReadonlySet<string> = new Set(['rows', 'failing', 'status', 'undo', 'types', 'desk']);
/** A page that hears nothing is told no more than this by itself: what it may be behind, and the newest of each kind. */
export const UNHEARD_MAX = LIMITS.linkUnheardMax + UNASKED.size;
/** A list that failed is asked for again after so long, as a person would press a button. */
const LIST_AGAIN_MS = 1_000;
const BEFORE: Status = {
  phase: 'connecting',
  isPaused: false,
  activity: 'idle',
  unsent: 0,
  attention: 0,
  storage: 'durable',
  host: 'here',
  logs: [],
};

export function openPage({ device, time, random, schema }: PageParts): Page {
  const life = time.clockFor({});
  const thread = createThread();
  const clock = clockOn(life, thread);
  let unheard = 0;
  const ports = new Set<PortPair>();
  let asked: EngineDevice | null = null;
  let servedBy: EngineDevice | null = null;
  let desk: readonly DeskItem[] | null = null;
  let isOpen = true;
  const open: OpenChannel = (events) => {
    const { engine } = device;
    asked = engine;
    servedBy = null;
    const pair = createPortPair({ time, random, thread });
    ports.add(pair);
    if (engine === null) pair.kill('host');
    else {
      const { openChannel } = hostOf(engine, device, random);
      servePort(pair.host, (events) =>
        openChannel({
          ...events,
          tell: (tell) => {
            if (UNASKED.has(tell.tell)) unheard += 1;
            events.tell(tell);
          },
        }),
      );
      device.whenGone.add(() => pair.kill('host'));
    }
    return openPortChannel(pair.page)({
      ...events,
      tell: (tell) => {
        unheard = 0;
        events.tell(tell);
      },
    });
  };
  const link = new Link({ open, clock, reopenMs: REOPEN_MS });
  link.listen({
    welcome: () => {
      servedBy = asked;
    },
    lost: () => {
      servedBy = null;
    },
  });
  const replica = new LinkedReplica<WorldSchema>({
    link,
    schema,
    data: schemaData(schema),
    types: {},
    platform: { clock, random: random.fork('ids'), digest: worldDigest },
    workspace: 'world',
    account: device.account,
    status: BEFORE,
    release: () => Promise.resolve(),
  });
  let lists = 0;
  const list = (): void => {
    if (!isOpen || link.end !== null) return;
    lists += 1;
    const at = lists;
    replica.desk.list().then(
      (items) => {
        if (at === lists) desk = items;
      },
      () => clock.timer(LIST_AGAIN_MS, () => (at === lists ? list() : undefined)),
    );
  };
  replica.desk.subscribe(list);
  list();
  return {
    link,
    replica,
    notes: replica.live((db) => db.selectFrom('note').select(['id', 'title', 'votes']).orderBy('id')),
    waiting: new Set(),
    get desk() {
      return desk;
    },
    get servedBy() {
      return servedBy;
    },
    thread,
    clock,
    get unheard() {
      return unheard;
    },
    close: () => {
      isOpen = false;
      life.stop();
      for (const pair of ports) pair.kill('page');
    },
  };
}

const hosts = new WeakMap<EngineDevice, Host>();

/** The host of these engines, as a worker composes it. Whoever runs the engines closes their file. */
export function hostOf(engine: EngineDevice, device: SimulatedDevice<WorldSchema>, random: SeededRandom): Host {
  const known = hosts.get(engine);
  if (known !== undefined) return known;
  const { database, sync } = engine;
  const state: EngineDevice['state'] = Object.assign(Object.create(engine.state), {
    ...accounted(engine, device),
    close: () => undefined,
  });
  const host = openHost({
    database,
    state,
    sync,
    platform: { clock: device.clock, random, digest: worldDigest },
    place: { storage: 'durable', host: 'here' },
    model: (type) => engine.state.store.tables.get(type)?.model ?? null,
  });
  hosts.set(engine, host);
  return host;
}

/** What comes of these for whom a tab asks is durable work of the device, whether or not the answer reaches the tab. */
const ACTS = ['write', 'commit', 'resolve', 'discard', 'undo', 'redo'] as const;

function accounted(engine: EngineDevice, device: SimulatedDevice<WorldSchema>): Partial<EngineDevice['state']> {
  let depth = 0;
  const act = (name: (typeof ACTS)[number]) => {
    const run = engine.state[name] as (...given: readonly unknown[]) => unknown;
    return (...given: readonly unknown[]): unknown => {
      if (depth > 0 || device.engine !== engine) return run(...given);
      depth += 1;
      try {
        return device.making(() => run(...given));
      } finally {
        depth -= 1;
      }
    };
  };
  return Object.fromEntries(ACTS.map((name) => [name, act(name)]));
}
