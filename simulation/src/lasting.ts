import type { FaultCode, SessionPhase } from '@holdfast/core';
import type { SeededRandom } from '@holdfast/replica/testing';
import type { SimulatedDevice } from './device.ts';
import { REFUSED_TITLE } from './ledger.ts';
import { counted, type World, type WorldSchema } from './world.ts';

/** Faults that are not healed: one device, or one piece of its work, is hurt for ever, and the rest must not notice. */
export const LASTING = ['cut-off', 'one-way', 'refused-work', 'disk-full', 'signed-out', 'log-lost'] as const;
export type LastingKind = (typeof LASTING)[number];

export interface Lasting {
  readonly kind: LastingKind;
  /** Who is hurt. Of `log-lost` it is everybody of its account. */
  readonly device: SimulatedDevice<WorldSchema>;
  /** Of `log-lost`: which. Other logs go on. */
  readonly log: string | null;
}

/** One seed in five. Drawn apart, so that the storm of a seed is the same with and without. */
export function drawLasting(worldsRandom: SeededRandom): LastingKind | null {
  const random = worldsRandom.fork('lasting');
  return random.chance(0.2) ? random.pick(LASTING) : null;
}

/** After the other faults have stopped. */
export function beginLasting(world: World, kind: LastingKind): Lasting {
  const random = world.random.fork('hurt');
  const device = random.pick(world.devices);
  const { rules } = device.network;
  const log = kind === 'log-lost' ? random.pick(world.logs) : null;
  switch (kind) {
    case 'cut-off':
      rules.offline = true;
      break;
    case 'one-way':
      if (random.chance(0.5)) rules.toLedger = false;
      else rules.fromLedger = false;
      break;
    case 'refused-work':
      refusedWork(world, device);
      break;
    case 'disk-full':
      device.disk.isFull = true;
      break;
    case 'signed-out':
      world.ledger.access.revoked.add(device.token);
      break;
    case 'log-lost':
      world.ledger.access.lose(device.account, log as string);
      break;
  }
  device.network.cut();
  world.trace.push(`${device.name} lasting ${kind}`);
  counted(world, `lasting ${kind}`);
  return { kind, device, log };
}

/** Something that the ledger never takes, and something else that needs it. */
function refusedWork(world: World, device: SimulatedDevice<WorldSchema>): void {
  let id = '';
  const action = device.commit((tx) => {
    id = tx.note.create({ title: REFUSED_TITLE });
  });
  if (action === null) return;
  counted(world, 'commits');
  if (device.commit((tx) => tx.note.update(id as never, { votes: { by: 1 } })) !== null) counted(world, 'commits');
}

/**
 * The ledger and this device no longer reach each other, or the device can keep nothing: it stands apart from the rest.
 * `log`: with this one; else with any.
 */
export function isApart(
  { lasting }: Pick<World, 'lasting'>,
  device: SimulatedDevice<WorldSchema>,
  log?: string,
): boolean {
  if (lasting === null || lasting.kind === 'refused-work') return false;
  if (lasting.kind !== 'log-lost') return lasting.device === device;
  return lasting.device.account === device.account && (log === undefined || log === lasting.log);
}

const REASONS: Readonly<Record<LastingKind, readonly FaultCode[]>> = {
  'cut-off': ['ledger-unreachable'],
  'one-way': ['ledger-unreachable', 'request-timeout'],
  'refused-work': [],
  'disk-full': ['storage-full'],
  'signed-out': ['unauthenticated'],
  'log-lost': ['not-allowed'],
};

/** I30: whether what the hurt device says of itself fits what hurts it. */
export function isHonest(
  { lasting, faults }: Pick<World, 'lasting' | 'faults'>,
  phase: SessionPhase,
  reason: FaultCode | undefined,
): boolean {
  if (lasting === null) return false;
  // A request is on its way, and nobody can know yet that it never arrives.
  if (reason === undefined) return phase === 'connecting' && lasting.kind === 'one-way';
  // What a login page said, before the device was hurt, is believed until the ledger answers: it never does again.
  if (faults.has('portal') && reason === 'network-untrusted') return true;
  // So is that it may not write, which the ledger may have taken back since.
  if (faults.has('revoke') && reason === 'not-allowed') return true;
  // A full disk does not take a person's choice.
  if (faults.has('rewind') && lasting.kind === 'disk-full' && reason === 'history-changed') return true;
  // Nor a hand-over that was under way, be it forward or back.
  if (faults.has('transfer') && lasting.kind === 'disk-full' && reason === 'permits-disabled') return true;
  return REASONS[lasting.kind].includes(reason);
}
