import { copyFileSync, cpSync, existsSync } from 'node:fs';
import { writeImage } from './crash-kit/wal.ts';
import { removeFile, type SimulatedDevice } from './device.ts';
import { removeFolder } from './ledger.ts';
import { addDevice, counted, type World, type WorldSchema } from './world.ts';

/** F34: the file is copied to a second machine of the same account; both go on. At most two copies a world. */
export function clone(world: World, device: SimulatedDevice<WorldSchema>): void {
  if (world.devices.length >= 5 || device.engine !== null || !existsSync(device.file)) return;
  const copy = addDevice(world, device.account, `${device.name}-copy-${world.devices.length}`);
  copyReplica(device.file, copy.file);
  for (const action of device.resolved) {
    copy.inherited.add(action);
    copy.mayBeBoth.add(action);
    device.mayBeBoth.add(action);
  }
  counted(world, 'copies');
  copy.start();
}

/** F33: the file as it was when it was kept; what was committed since is on this device no more. */
export function yesterday(world: World, device: SimulatedDevice<WorldSchema>): void {
  if (device.engine !== null || !existsSync(device.file)) return;
  const kept = `${device.file}.kept`;
  if (!existsSync(kept)) {
    copyReplica(device.file, kept);
    device.keep();
    return;
  }
  removeFile(device.file);
  copyReplica(kept, device.file);
  device.forget();
  counted(world, 'restored files');
}

/** F29: the machine is without power from one moment to the next: of what was not synced the last part is gone. */
export function powerCut(world: World, device: SimulatedDevice<WorldSchema>): void {
  if (device.engine === null) return;
  const { image, cuts } = device.withoutPower();
  const at = world.random.pick(cuts);
  device.crash();
  // Nobody on this machine hears any more what was answered a moment ago.
  for (const tab of world.tabs) if (tab.device === device) tab.kill();
  removeFile(device.file);
  writeImage(device.file, { ...image, wal: image.wal.subarray(0, at) });
  const lost = device.forgetAfter(at);
  counted(world, lost > 0 ? 'power cuts that lost commits' : 'power cuts');
}

/** HL1: the ledger's files are copied once; later they are put back, and what it accepted since is gone there. */
export function rewind(world: World): void {
  const { folder } = world.ledger;
  const backup = `${folder}.backup`;
  world.ledger.kill();
  if (!existsSync(backup)) {
    if (existsSync(folder)) cpSync(folder, backup, { recursive: true });
  } else {
    removeFolder(folder);
    cpSync(backup, folder, { recursive: true });
    counted(world, 'ledgers rewound');
  }
  world.ledger.start();
}

function copyReplica(from: string, to: string): void {
  for (const suffix of ['', '-wal'])
    if (existsSync(`${from}${suffix}`)) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
}
