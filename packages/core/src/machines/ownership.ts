/**
 * Who performs the upstream requests of a replica: the host itself, or a page on behalf of a daemon (7, OW1). At most
 * one owner generation can take effect (OW2); a change of owner therefore ends with a higher generation.
 */
export type OwnerMode = 'host' | 'browser-gateway';
export type OwnershipMode = OwnerMode | 'transitioning-to-host' | 'transitioning-to-browser';
export type OwnershipTransition = 'idle' | 'transferring-ownership';
/**
 * - `preparing`: no new permits.
 * - `draining`: never-started permits are abandoned, requests in flight finish or expire into obligations.
 * - `switching`: nothing is active any more; only the switch is left.
 */
export type TransferPhase = 'preparing' | 'draining' | 'switching';

/** As it stands in `hf_coordinator`. */
export interface OwnershipRow {
  readonly mode: OwnershipMode;
  readonly transition: OwnershipTransition;
  readonly target: OwnerMode | null;
  readonly phase: TransferPhase | null;
}

export type OwnershipPlace =
  | OwnerMode
  | 'to-host-preparing'
  | 'to-host-draining'
  | 'to-host-switching'
  | 'to-browser-preparing'
  | 'to-browser-draining'
  | 'to-browser-switching';

/** `drained`: no permit is active any more. `force`: the deadline of the transfer has passed. */
export type OwnershipSignal =
  | 'prepare-host'
  | 'prepare-browser'
  | 'drain'
  | 'drained'
  | 'switch'
  | 'abort'
  | 'force'
  | 'host-restarted';

/** `refused`: may arrive, changes nothing, and its sender is told. */
type Cell = OwnershipPlace | 'stay' | 'refused';

export const OWNERSHIP_GRID: Readonly<Record<OwnershipPlace, Readonly<Record<OwnershipSignal, Cell>>>> = {
  host: {
    'prepare-host': 'stay',
    'prepare-browser': 'to-browser-preparing',
    drain: 'refused',
    drained: 'refused',
    switch: 'refused',
    abort: 'stay',
    force: 'refused',
    'host-restarted': 'stay',
  },
  'browser-gateway': {
    'prepare-host': 'to-host-preparing',
    'prepare-browser': 'stay',
    drain: 'refused',
    drained: 'refused',
    switch: 'refused',
    abort: 'stay',
    force: 'refused',
    'host-restarted': 'stay',
  },
  'to-host-preparing': {
    'prepare-host': 'stay',
    'prepare-browser': 'refused',
    drain: 'to-host-draining',
    drained: 'refused',
    switch: 'refused',
    abort: 'browser-gateway',
    force: 'host',
    'host-restarted': 'stay',
  },
  'to-host-draining': {
    'prepare-host': 'stay',
    'prepare-browser': 'refused',
    drain: 'stay',
    drained: 'to-host-switching',
    switch: 'refused',
    abort: 'browser-gateway',
    force: 'host',
    'host-restarted': 'stay',
  },
  'to-host-switching': {
    'prepare-host': 'stay',
    'prepare-browser': 'refused',
    drain: 'stay',
    drained: 'stay',
    switch: 'host',
    abort: 'browser-gateway',
    force: 'host',
    'host-restarted': 'stay',
  },
  'to-browser-preparing': {
    'prepare-host': 'refused',
    'prepare-browser': 'stay',
    drain: 'to-browser-draining',
    drained: 'refused',
    switch: 'refused',
    abort: 'host',
    force: 'browser-gateway',
    'host-restarted': 'stay',
  },
  'to-browser-draining': {
    'prepare-host': 'refused',
    'prepare-browser': 'stay',
    drain: 'stay',
    drained: 'to-browser-switching',
    switch: 'refused',
    abort: 'host',
    force: 'browser-gateway',
    'host-restarted': 'stay',
  },
  'to-browser-switching': {
    'prepare-host': 'refused',
    'prepare-browser': 'stay',
    drain: 'stay',
    drained: 'stay',
    switch: 'browser-gateway',
    abort: 'host',
    force: 'browser-gateway',
    'host-restarted': 'stay',
  },
};

export type OwnershipEffect = 'raise-generation' | 'abandon-never-started' | 'end-active-permits';

export type OwnershipStep =
  | { readonly move: 'to'; readonly place: OwnershipPlace; readonly effects: readonly OwnershipEffect[] }
  | { readonly move: 'stay'; readonly effects: readonly OwnershipEffect[] }
  | { readonly move: 'refused' };

export function stepOwnership(place: OwnershipPlace, signal: OwnershipSignal): OwnershipStep {
  const cell = OWNERSHIP_GRID[place][signal];
  if (cell === 'refused') return { move: 'refused' };
  if (cell === 'stay') return { move: 'stay', effects: signal === 'drain' ? ['abandon-never-started'] : [] };
  return { move: 'to', place: cell, effects: EFFECTS[signal] };
}

const EFFECTS: Readonly<Record<OwnershipSignal, readonly OwnershipEffect[]>> = {
  'prepare-host': [],
  'prepare-browser': [],
  drain: ['abandon-never-started'],
  drained: [],
  switch: ['raise-generation'],
  abort: [],
  force: ['end-active-permits', 'raise-generation'],
  'host-restarted': [],
};

const ROWS: Readonly<Record<OwnershipPlace, OwnershipRow>> = {
  host: { mode: 'host', transition: 'idle', target: null, phase: null },
  'browser-gateway': { mode: 'browser-gateway', transition: 'idle', target: null, phase: null },
  'to-host-preparing': transferRow('host', 'preparing'),
  'to-host-draining': transferRow('host', 'draining'),
  'to-host-switching': transferRow('host', 'switching'),
  'to-browser-preparing': transferRow('browser-gateway', 'preparing'),
  'to-browser-draining': transferRow('browser-gateway', 'draining'),
  'to-browser-switching': transferRow('browser-gateway', 'switching'),
};

function transferRow(target: OwnerMode, phase: TransferPhase): OwnershipRow {
  const mode = target === 'host' ? 'transitioning-to-host' : 'transitioning-to-browser';
  return { mode, transition: 'transferring-ownership', target, phase };
}

export const ownershipRow = (place: OwnershipPlace): OwnershipRow => ROWS[place];

/**
 * Reads the stored columns. What this code cannot read counts as the careful one (PM13): a transfer under way, in which
 * nobody gets a new permit and from which abort, drain and force lead out.
 */
export function readOwnership(row: Readonly<Record<keyof OwnershipRow, unknown>>): OwnershipPlace {
  if (row.transition === 'idle' && (row.mode === 'host' || row.mode === 'browser-gateway')) return row.mode;
  const toBrowser = row.mode === 'transitioning-to-browser' || row.target === 'browser-gateway';
  const phase = row.phase === 'preparing' || row.phase === 'switching' ? row.phase : 'draining';
  return toBrowser ? `to-browser-${phase}` : `to-host-${phase}`;
}

/** The steady owner, or the one that hands over. */
export function sourceOwner(place: OwnershipPlace): OwnerMode {
  if (place === 'host' || place === 'browser-gateway') return place;
  return place.startsWith('to-host') ? 'browser-gateway' : 'host';
}

export const isSteady = (place: OwnershipPlace): place is OwnerMode => place === 'host' || place === 'browser-gateway';

/** Issue and start: only the steady owner (PM1, PM3). */
export const mayStart = (place: OwnershipPlace, owner: OwnerMode): boolean => place === owner;

/** Entry of a local commit: the steady owner, and the source owner while a transfer prepares or drains (PM5). */
export const mayEnter = (place: OwnershipPlace, owner: OwnerMode): boolean =>
  sourceOwner(place) === owner && !place.endsWith('switching');
