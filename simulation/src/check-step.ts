import type { EngineDevice } from '@holdfast/replica/testing/engine';
import type { Violation } from './violation.ts';
import type { Examined } from './world.ts';

/** What must hold at any moment: every open file fits itself (I02, I07, I08, I11, I13), and the status does not lie (I30). */
export function checkStep(world: Examined): Violation[] {
  const found: Violation[] = [];
  for (const device of world.devices) {
    const { name, engine } = device;
    if (engine === null) continue;
    found.push(...device.takeFlaws().filter(({ invariant }) => invariant !== 'I21' || !world.faults.has('rewind')));
    found.push(...checkKept(device, engine), ...checkCounted(name, engine));
    // A history that a person adopted stands where it stands, and may be shorter (HL4).
    if (!world.faults.has('rewind')) found.push(...checkForward(device, engine), ...checkOrdered(name, engine));
    for (const { check, what } of engine.examine().findings)
      found.push({ invariant: INVARIANT[check] ?? 'I11', device: name, what: `${check}: ${what}` });
    for (const log of engine.state.logs()) {
      // A ledger that lost its history, and a log that is being repaired to it, may well stand behind this one.
      const isFollowing = log.blocked === null && !log.repairing;
      if (isFollowing && log.ledgerHead !== null && log.head > log.ledgerHead)
        found.push({
          invariant: 'I08',
          device: name,
          what: `head ${log.head} of ${log.log} is above the ledger head ${log.ledgerHead} that it knows`,
        });
    }
  }
  return found;
}

/** I01, I25: nothing that resolved is ever without an outcome, whatever was said to the device, and whatever was not. */
function checkKept({ name, resolved }: Examined['devices'][number], engine: EngineDevice): Violation[] {
  return [...resolved].flatMap((action) =>
    engine.state.outcome(action) === undefined
      ? [
          {
            invariant: 'I25',
            device: name,
            what: `the commit ${action} is neither waiting, nor in the log, nor closed`,
          },
        ]
      : [],
  );
}

/** I30: the status is held against the rows of the file, and against what it says itself. */
function checkCounted(device: string, { database, sync: { status } }: EngineDevice): Violation[] {
  const rows = database.prepare('SELECT count(*) AS n FROM main.hf_outbox').get()?.['n'];
  const unsent = status.unsent === rows ? [] : [`the status says ${status.unsent} unsent, there are ${rows}`];
  const behind = status.logs.flatMap(({ log, phase, head, ledgerHead }) =>
    phase === 'live' && ledgerHead !== null && head < ledgerHead
      ? [`${log} says live at ${head} of ${ledgerHead}`]
      : [],
  );
  return [...unsent, ...behind].map((what) => ({ invariant: 'I30', device, what }));
}

/** I18: what is called ordered is in what a reader sees: its version is at or below the head, and no row vanishes between. */
function checkOrdered(device: string, { database }: EngineDevice): Violation[] {
  return database
    .prepare(
      `SELECT o.action_id AS action, o.outcome ->> 'version' AS version, l.head AS head FROM main.hf_outcome o
       JOIN main.hf_log l ON l.log = o.outcome ->> 'log'
       WHERE o.outcome ->> 'state' = 'ordered' AND o.outcome ->> 'version' > l.head`,
    )
    .all()
    .map(({ action, version, head }) => ({
      invariant: 'I18',
      device,
      what: `${action} is called ordered at ${version}, and the head is ${head}`,
    }));
}

/** Nobody else writes in its name: no copy of its file, and no older self. */
export const isAlone = ({ devices }: Examined, device: Examined['devices'][number]): boolean =>
  device.mayBeBoth.size === 0 && devices.every((one) => one === device || one.account !== device.account);

/** I09: within one run and one epoch the head only grows. */
function checkForward(device: Examined['devices'][number], engine: EngineDevice): Violation[] {
  return engine.state.logs().flatMap(({ log, epoch, head }) => {
    const before = device.seenAt.get(log);
    device.seenAt.set(log, { engine, epoch, head });
    const isSame = before?.engine === engine && before.epoch === epoch;
    if (!isSame || before.head <= head) return [];
    return [{ invariant: 'I09', device: device.name, what: `the head of ${log} went from ${before.head} to ${head}` }];
  });
}

const INVARIANT: Readonly<Record<string, string>> = {
  sqlite: 'I02',
  chain: 'I07',
  cursor: 'I08',
  signature: 'I11',
  projection: 'I11',
  outbox: 'I02',
  conservation: 'I13',
  permits: 'I21',
  desk: 'I13',
};
