import type { SimulatedDevice } from './device.ts';
import { unlessFull } from './disk.ts';
import { counted, type World, type WorldSchema } from './world.ts';

/** What happens to hosts and their credentials: sessions end, another host takes a file, ownership is handed over. */
type Device = SimulatedDevice<WorldSchema>;

/** AC1: the ledger takes a device's token no more; the next time a person signs in again. */
export function signOut(world: World, device: Device): void {
  const { revoked } = world.ledger.access;
  if (revoked.has(device.token)) signInAgain(world, device);
  else revoked.add(device.token);
}

function signInAgain(world: World, device: Device): void {
  device.signIn();
  counted(world, 'signed in again');
}

/** LG11: the account may only read from now on; the next time it may write again. */
export function revoke(world: World, { account }: Device): void {
  const { readers } = world.ledger.access;
  if (readers.delete(account)) counted(world, 'grants given back');
  else readers.add(account);
}

/** PM8, I22: a second host opens the file of one that still runs, and believes that it is the only one. */
export function takeOver(world: World, device: Device): void {
  const outranked = device.takeOver();
  if (outranked === null) return;
  counted(world, 'take-overs');
  try {
    outranked.state.write(() => outranked.state.setSetting('outranked', true));
  } catch {
    return;
  }
  world.flaws.push({ invariant: 'I22', device: device.name, what: 'a host wrote after another had taken its file' });
}

/** OW2: one step of a hand-over between the host and a browser, as somebody asks for it. */
export function transfer(world: World, device: Device): void {
  const { engine } = device;
  if (engine === null) return;
  const how = world.random.pick(['on', 'on', 'on', 'abort', 'force', 'host', 'browser-gateway'] as const);
  if (how !== 'abort' && how !== 'force') return stepTransfer(device, how);
  unlessFull(() =>
    engine.state.write(() => {
      const { transfer: of } = engine.coordinator;
      const moved = how === 'abort' ? of.abort() : of.force();
      if (moved.ok) engine.state.takeOver(of.current().generation);
    }),
  );
}

/** The next step towards this owner; `on`: of the transfer under way, or of a new one to the other owner. */
function stepTransfer(device: Device, to: 'on' | 'host' | 'browser-gateway'): void {
  const { engine } = device;
  if (engine === null) return;
  unlessFull(() =>
    engine.state.write(() => {
      const { transfer: of } = engine.coordinator;
      const { place } = of.current();
      if (to !== 'on' || place === 'host' || place === 'browser-gateway') {
        const target = to === 'on' ? (place === 'host' ? 'browser-gateway' : 'host') : to;
        if (place !== target) of.prepare({ target, deadlineMs: 1_000 });
      } else if (place.endsWith('switching')) {
        if (of.switch().ok) engine.state.takeOver(of.current().generation);
      } else of.drain();
    }),
  );
}

/** What people and operators do once the storm is over: sign in, and give the replica back to its host. */
export function attendHosts(world: World): void {
  for (const device of world.devices) {
    const { engine } = device;
    const isLeft = world.lasting?.kind === 'signed-out' && world.lasting.device === device;
    if (!isLeft && world.ledger.access.revoked.has(device.token)) signInAgain(world, device);
    const place = engine?.coordinator.transfer.current().place;
    if (engine === null || place === 'host') continue;
    stepTransfer(device, place?.startsWith('to-') === true ? 'on' : 'host');
    if (engine.coordinator.transfer.current().place === 'host') engine.sync.kick('online');
  }
}
