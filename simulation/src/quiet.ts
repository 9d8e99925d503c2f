import { isApart } from './lasting.ts';
import type { Tab } from './tab.ts';
import type { World } from './world.ts';

/**
 * Nothing flows, nothing is owed, and everybody is at one head of each log; who stands apart is not waited for. Looked at
 * after every event of the world, so that what costs least comes first.
 */
export function isQuiet(world: World): boolean {
  const { devices, logs, tabs } = world;
  return (
    logs.every((log) => isOneHead(world, log)) &&
    tabs.every((tab) => isServed(tab) || isApart(world, tab.device)) &&
    devices.every((device) => isApart(world, device) || device.engine?.coordinator.obligations.open().length === 0) &&
    devices.every((device) => isLive(world, device))
  );
}

/** A tab that was killed is not waited for; one that is open waits for its host, and so does whoever looks at it. */
const isServed = (tab: Tab): boolean => tab.unanswered === 0 && (!tab.isOpen || tab.isServed);

function isOneHead(world: World, log: string): boolean {
  const heads = new Set<number>();
  for (const device of world.devices) {
    if (isApart(world, device, log)) continue;
    const { engine } = device;
    const followed = engine?.state.log(log);
    if (engine === null || followed?.stage !== 'visible' || engine.state.flowing(log) > 0) return false;
    heads.add(followed.head);
  }
  return heads.size <= 1;
}

/** As a whole, or with each log that it has not lost. */
function isLive(world: World, device: World['devices'][number]): boolean {
  const status = device.engine?.sync.status;
  if (isApart(world, device))
    return world.logs.every(
      (log) => isApart(world, device, log) || status?.logs.find((one) => one.log === log)?.phase === 'live',
    );
  return status?.phase === 'live';
}
