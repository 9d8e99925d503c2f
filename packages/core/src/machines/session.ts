/**
 * What the sync of one replica is doing, as its status says it (6.5), and when a person is told that the session
 * expired (AC1). The loop takes a signal, steps, and performs the effects.
 */
export const SESSION_PHASES = [
  'offline',
  'connecting',
  'catching-up',
  'live',
  'sign-in-needed',
  'other-account',
  'update-needed',
  'quota',
  'blocked',
  'stalled',
  'moved',
  'deleted',
  'history-changed',
  'no-owner',
  'stopped',
] as const;
export type SessionPhase = (typeof SESSION_PHASES)[number];

/**
 * - `begin`: a cycle begins. `unreachable`: nobody answered, or not the ledger (LG10).
 * - `behind`, `at-head`: the ledger answered as ledger, and the head is below, or at, the one it named.
 * - `expired`: 401, login page, redirect: found by an answer, never by the clock alone. `credentials`: fresh ones.
 * - `other-account` … `history-changed`: said by an answer. `cleared`: the reason is gone, ask again.
 * - `stalled`, `progress`: the watchdog (SY3). `owner-gone`, `owner-found`: the tab or daemon that holds the replica.
 * - `stop`: closed, or outranked by a newer host.
 */
export type SessionSignal =
  | 'begin'
  | 'unreachable'
  | 'behind'
  | 'at-head'
  | 'expired'
  | 'credentials'
  | 'other-account'
  | 'update-needed'
  | 'quota'
  | 'blocked'
  | 'moved'
  | 'deleted'
  | 'history-changed'
  | 'cleared'
  | 'stalled'
  | 'progress'
  | 'owner-gone'
  | 'owner-found'
  | 'stop';

/** Every signal is legal in every phase: what a late answer says after the phase moved on is ignored. */
type Cell = SessionPhase | 'stay';

/** What an answer of the ledger says of the replica wins over whatever was believed before. */
const SAID_BY_ANSWER = {
  expired: 'sign-in-needed',
  'other-account': 'other-account',
  'update-needed': 'update-needed',
  quota: 'quota',
  blocked: 'blocked',
  moved: 'moved',
  deleted: 'deleted',
  'history-changed': 'history-changed',
  'owner-gone': 'no-owner',
  stop: 'stopped',
} as const satisfies Partial<Record<SessionSignal, SessionPhase>>;

/** Reasons that only another answer, or somebody named in the docs, takes away; the loop goes on asking slowly. */
const HINDERED = {
  ...SAID_BY_ANSWER,
  begin: 'stay',
  unreachable: 'stay',
  behind: 'catching-up',
  'at-head': 'live',
  credentials: 'connecting',
  cleared: 'connecting',
  stalled: 'stay',
  progress: 'stay',
  'owner-found': 'stay',
} as const satisfies Record<SessionSignal, Cell>;

const NOTHING_MOVES = {
  begin: 'stay',
  unreachable: 'stay',
  behind: 'stay',
  'at-head': 'stay',
  expired: 'stay',
  credentials: 'stay',
  'other-account': 'stay',
  'update-needed': 'stay',
  quota: 'stay',
  blocked: 'stay',
  moved: 'stay',
  deleted: 'stay',
  'history-changed': 'stay',
  cleared: 'stay',
  stalled: 'stay',
  progress: 'stay',
  'owner-gone': 'stay',
  'owner-found': 'stay',
  stop: 'stopped',
} as const satisfies Record<SessionSignal, Cell>;

export const SESSION_GRID: Readonly<Record<SessionPhase, Readonly<Record<SessionSignal, Cell>>>> = {
  offline: {
    ...SAID_BY_ANSWER,
    begin: 'connecting',
    unreachable: 'stay',
    behind: 'catching-up',
    'at-head': 'live',
    credentials: 'connecting',
    cleared: 'stay',
    stalled: 'stay',
    progress: 'stay',
    'owner-found': 'stay',
  },
  connecting: {
    ...SAID_BY_ANSWER,
    begin: 'stay',
    unreachable: 'offline',
    behind: 'catching-up',
    'at-head': 'live',
    credentials: 'stay',
    cleared: 'stay',
    stalled: 'stalled',
    progress: 'stay',
    'owner-found': 'stay',
  },
  'catching-up': {
    ...SAID_BY_ANSWER,
    begin: 'stay',
    unreachable: 'offline',
    behind: 'stay',
    'at-head': 'live',
    credentials: 'stay',
    cleared: 'stay',
    stalled: 'stalled',
    progress: 'stay',
    'owner-found': 'stay',
  },
  live: {
    ...SAID_BY_ANSWER,
    begin: 'stay',
    unreachable: 'offline',
    behind: 'catching-up',
    'at-head': 'stay',
    credentials: 'stay',
    cleared: 'stay',
    stalled: 'stalled',
    progress: 'stay',
    'owner-found': 'stay',
  },
  stalled: {
    ...SAID_BY_ANSWER,
    begin: 'stay',
    unreachable: 'offline',
    behind: 'stay',
    'at-head': 'live',
    credentials: 'connecting',
    cleared: 'connecting',
    stalled: 'stay',
    progress: 'catching-up',
    'owner-found': 'stay',
  },
  quota: { ...HINDERED, quota: 'stay', unreachable: 'offline', stalled: 'stay', progress: 'catching-up' },
  blocked: { ...HINDERED, blocked: 'stay' },
  'other-account': { ...HINDERED, 'other-account': 'stay' },
  'update-needed': { ...HINDERED, 'update-needed': 'stay' },
  moved: { ...HINDERED, moved: 'stay' },
  deleted: { ...HINDERED, deleted: 'stay' },
  'history-changed': { ...HINDERED, 'history-changed': 'stay' },
  /** The loop stands still: only fresh credentials start it, and nothing that was still on its way changes that. */
  'sign-in-needed': { ...NOTHING_MOVES, credentials: 'connecting', 'owner-gone': 'no-owner' },
  /** Another process holds the replica: what this one still hears says nothing. */
  'no-owner': { ...NOTHING_MOVES, 'owner-found': 'connecting' },
  stopped: { ...NOTHING_MOVES, stop: 'stay' },
};

/** Phases in which the loop does not run. */
export const LOOP_STANDS: Readonly<Record<SessionPhase, boolean>> = {
  offline: false,
  connecting: false,
  'catching-up': false,
  live: false,
  'sign-in-needed': true,
  'other-account': false,
  'update-needed': false,
  quota: false,
  blocked: false,
  stalled: false,
  moved: false,
  deleted: false,
  'history-changed': false,
  'no-owner': true,
  stopped: true,
};

/** Whether the app knows of the present expiry. `due`: there was nobody to tell yet. */
export type ExpiryNotice = 'none' | 'due' | 'told';

export interface Session {
  readonly phase: SessionPhase;
  readonly notice: ExpiryNotice;
}

export const SESSION_AT_REST: Session = { phase: 'offline', notice: 'none' };

export type SessionEffect =
  /** With its timers and its socket, once; it is no failed attempt of anything (AC1). */
  | 'stop-loop'
  | 'start-loop'
  /** SY3: one cycle now, whatever the timers say. */
  | 'kick'
  | 'tell-sign-in-needed';

export interface SessionStep {
  readonly session: Session;
  readonly effects: readonly SessionEffect[];
}

/** `hasAudience`: a visible tab that is online, or an app without tabs. */
export function stepSession(session: Session, signal: SessionSignal, hasAudience: boolean): SessionStep {
  const cell = SESSION_GRID[session.phase][signal];
  const phase = cell === 'stay' ? session.phase : cell;
  const effects: SessionEffect[] = [];
  if (LOOP_STANDS[phase] && !LOOP_STANDS[session.phase]) effects.push('stop-loop');
  if (!LOOP_STANDS[phase] && LOOP_STANDS[session.phase]) effects.push('start-loop');
  if (phase === 'stalled' && session.phase !== 'stalled') effects.push('kick');
  return tellIfHeard({ phase, notice: nextNotice(session, phase, signal) }, hasAudience, effects);
}

/** One expiry lasts until there are fresh credentials, or until the ledger took the old ones after all. */
function nextNotice(session: Session, phase: SessionPhase, signal: SessionSignal): ExpiryNotice {
  const isOver = phase !== session.phase && (signal === 'credentials' || signal === 'behind' || signal === 'at-head');
  if (isOver) return 'none';
  return phase === 'sign-in-needed' && session.notice === 'none' ? 'due' : session.notice;
}

/** AC1: a tab became visible, or the device online. Tells what is still due, once per expiry. */
export const audienceArrived = (session: Session): SessionStep => tellIfHeard(session, true, []);

function tellIfHeard(session: Session, hasAudience: boolean, effects: SessionEffect[]): SessionStep {
  if (session.notice !== 'due' || session.phase !== 'sign-in-needed' || !hasAudience) return { session, effects };
  return { session: { ...session, notice: 'told' }, effects: [...effects, 'tell-sign-in-needed'] };
}
