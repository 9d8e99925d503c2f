import type { SimulatedDevice } from './device.ts';
import { clone, powerCut, rewind, yesterday } from './file-faults.ts';
import { revoke, signOut, takeOver, transfer } from './hosts.ts';
import { decide } from './people.ts';
import { counted, type World, type WorldSchema } from './world.ts';

/** One fault of the world's classes, at this device or at the ledger; the next time it ends. */
export function disturb(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random, faults } = world;
  const possible = [...faults];
  if (possible.length === 0) return;
  const fault = random.pick(possible);
  const { rules } = device.network;
  world.trace.push(`${device.name} ${fault}`);
  counted(world, fault);
  switch (fault) {
    case 'crash':
      if (device.engine === null) device.start();
      else device.crash();
      return;
    case 'partition':
      rules.offline = !rules.offline;
      if (rules.offline) device.network.cut();
      else device.engine?.sync.kick('online');
      return;
    case 'one-way':
      if (random.chance(0.5)) rules.toLedger = !rules.toLedger;
      else rules.fromLedger = !rules.fromLedger;
      return;
    case 'loss':
      rules.loss = random.pick([0, 0.1, 0.4]);
      return;
    case 'doubling':
      rules.doubling = random.pick([0, 0.2, 0.6]);
      return;
    case 'lateness':
      rules.lateness = random.pick([0, 0.2]);
      rules.lateMs = random.pick([500, 5_000, 70_000]);
      rules.delayMs = random.pick([
        [1, 1],
        [1, 50],
        [20, 400],
      ] as const);
      return;
    case 'truncation':
      rules.truncation = random.pick([0, 0.2]);
      return;
    case 'portal':
      rules.portal = !rules.portal;
      return;
    case 'ledger-restart':
      if (world.ledger.up) world.ledger.kill();
      else world.ledger.start();
      return;
    case 'clock-jump':
      device.clock.jump(random.pick([1_000, 60_000, 8 * 3_600_000]));
      return;
    case 'skew':
      device.clock.skewMs = random.pick([-3_600_000, 0, 3_600_000, 315_360_000_000]);
      return;
    case 'clone':
      return clone(world, device);
    case 'yesterday':
      return yesterday(world, device);
    case 'people':
      return decide(world, device);
    case 'sign-out':
      return signOut(world, device);
    case 'take-over':
      return takeOver(world, device);
    case 'transfer':
      return transfer(world, device);
    case 'revoke':
      return revoke(world, device);
    case 'tab':
      return tab(world);
    case 'tab-people':
      return actInTabs(world);
    case 'kill':
      return device.killSoon(random.below(60) + 1, random.chance(0.5));
    case 'power-cut':
      return powerCut(world, device);
    case 'disk-full':
      device.disk.isFull = !device.disk.isFull;
      return;
    case 'freeze':
      return freeze(world);
    case 'rewind':
      return rewind(world);
  }
}

/** LK2: a tab is killed in the middle of what it does, often of a commit; the next time another one is opened. */
function tab(world: World): void {
  for (const one of world.tabs) {
    if (!one.isOpen) one.open();
    else {
      one.commit((tx) => tx.note.create({ title: 'one' }), world.random.pick(world.logs));
      one.kill();
    }
  }
}

/** F51, LK3: a tab is frozen in the middle of what it does; the next time it is thawed. */
function freeze(world: World): void {
  for (const one of world.tabs) {
    if (one.isFrozen) one.thaw();
    else one.freeze();
  }
}

/** OB6, CM7: somebody acts in a tab as on a device, with what the tab shows. */
export function actInTabs(world: World): void {
  for (const one of world.tabs) {
    const { name } = one.device;
    if (!one.isOpen) one.open();
    world.trace.push(`${name} tab: ${one.act() ?? 'nobody there'}`);
  }
}

/** Faults end: everybody runs, the network works, clocks go on as they are. */
export function heal(world: World): void {
  if (!world.ledger.up) world.ledger.start();
  world.ledger.access.readers.clear();
  for (const device of world.devices) {
    Object.assign(device.network.rules, {
      toLedger: true,
      fromLedger: true,
      delayMs: [1, 5],
      loss: 0,
      doubling: 0,
      lateness: 0,
      truncation: 0,
      portal: false,
      offline: false,
    });
    device.network.cut();
    device.disk.isFull = false;
    device.start();
    device.engine?.sync.kick('online');
  }
  for (const one of world.tabs) {
    one.open();
    one.thaw();
    one.look();
  }
  world.trace.push('heal');
}
