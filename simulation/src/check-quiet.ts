import type { StoredEvent } from '@holdfast/core';
import type { EngineDevice } from '@holdfast/replica/testing/engine';
import { checkStep, isAlone } from './check-step.ts';
import { isApart, isHonest } from './lasting.ts';
import { checkEntityChains, checkOwnOrder, compareNotes, foldPlainly, noteOfRow, type PlainNote } from './oracle.ts';
import { checkIntent } from './oracle-intent.ts';
import { checkSymmetry } from './oracle-symmetry.ts';
import { isSaidByOthers, readLog, type WholeLog } from './read-log.ts';
import { checkRepeats } from './repeat.ts';
import type { Violation } from './violation.ts';
import type { Examined } from './world.ts';

/** Nobody can tell a device that stands apart that the ledger was put back, or it could not write that down. */
const mayNotKnow = (world: Examined, device: Examined['devices'][number], log: string): boolean =>
  world.faults.has('rewind') && isApart(world, device, log);

/** Open obligations, each with what its operation is in the outbox. */
const owedOf = (engine: EngineDevice): string =>
  engine.coordinator.obligations
    .open()
    .map(({ identity, class: of, reason, disposition }) => {
      const row = engine.database
        .prepare('SELECT state, held_by, judge_at FROM main.hf_outbox WHERE request_id = ?')
        .get(identity);
      return `${of} ${identity} ${reason} ${disposition}: ${JSON.stringify(row ?? null)}`;
    })
    .join('; ');

/** What must hold at rest, after faults have stopped. `isTampered`: a file was written by somebody, so that a repair was right. */
export async function checkQuiet(
  world: Examined,
  { isTampered = false }: { readonly isTampered?: boolean } = {},
): Promise<Violation[]> {
  const found = checkStep(world);
  const stands = new Set<string>();
  for (const log of world.logs) {
    const whole = await readLog(world, log);
    for (const action of whole.actions.keys())
      if (stands.has(action)) found.push({ invariant: 'I04', what: `action ${action} stands in two logs` });
      else stands.add(action);
    found.push(...(await checkLog(world, log, whole)));
  }
  for (const { name, engine } of world.devices) {
    if (engine === null) continue;
    if (!isTampered && !world.faults.has('rewind')) found.push(...checkNeverOther(name, engine));
    found.push(...checkEnded(name, engine));
  }
  for (const { name, engine, resolved } of world.devices)
    for (const action of resolved)
      if (engine !== null && engine.state.outcome(action) === undefined && !stands.has(action))
        found.push({ invariant: 'I01', device: name, what: `the durable commit ${action} is nowhere` });
  return found;
}

/** One log, and where everybody stands in it. */
async function checkLog(world: Examined, log: string, whole: WholeLog): Promise<Violation[]> {
  const found: Violation[] = [];
  const { events, actions, said, head, dense } = whole;
  if (!dense) found.push({ invariant: 'I06', what: `the log ${log} is not dense` });
  for (const [action, { seen, count, requests }] of actions)
    if (seen !== count || requests.size !== 1)
      found.push({
        invariant: 'I04',
        what: `action ${action} stands ${seen} times for ${count} events, under ${requests.size} requests`,
      });
  const verified = await world.ledger.current?.engine.verify({ workspace: 'world', log });
  if (verified === undefined || verified === null)
    return [...found, { invariant: 'I03', what: 'the ledger has no log' }];
  for (const problem of verified.problems)
    found.push({
      invariant: 'I11',
      what: `ledger: ${problem.what} ${problem.version ?? ''} expected ${problem.expected}, found ${problem.found}`,
    });
  found.push(...checkEntityChains(events));
  const notes = foldPlainly(events);
  for (const device of world.devices) {
    const { name, engine } = device;
    if (engine === null) continue;
    if (!isApart(world, device, log)) found.push(...checkShown(device, log, notes));
    if (isAlone(world, device) && !world.faults.has('rewind'))
      found.push(...checkIntent(device, events), ...checkSymmetry(device, events));
    if (!world.faults.has('rewind')) found.push(...checkBytes(name, engine, log, events));
    const alone = [...device.resolved].filter((action) => !device.mayBeBoth.has(action) && !device.waited.has(action));
    found.push(...checkOwnOrder(name, alone, events));
    found.push(...checkHonest(world, device, { log, head, chain: verified.chain }));
    if (!isApart(world, device, log))
      found.push(...checkAtRest(device, { log, head, chain: verified.chain, signature: verified.signature }));
    for (const action of device.resolved) {
      const outcome = engine.state.outcome(action);
      if (outcome === undefined) continue;
      if (
        outcome.state === 'ordered' &&
        outcome.log === log &&
        !actions.has(action) &&
        !isSaidByOthers(device.said.get(action), said) &&
        !mayNotKnow(world, device, log)
      )
        found.push({
          invariant: 'I03',
          device: name,
          what: `the ordered commit ${action} is not in the log: ${JSON.stringify(outcome)}`,
        });
      else if (
        (outcome.state === 'discarded' || outcome.state === 'replaced') &&
        actions.has(action) &&
        !device.mayBeBoth.has(action)
      )
        found.push({ invariant: 'I13', device: name, what: `the closed commit ${action} is in the log, too` });
    }
  }
  const firstVersions = new Map<string, number>();
  for (const { requestId, version } of events) if (!firstVersions.has(requestId)) firstVersions.set(requestId, version);
  found.push(
    ...(await checkRepeats(
      world,
      world.devices.flatMap(({ pushes }) => pushes.filter(({ url }) => url.includes(`/logs/${log}/`))),
      firstVersions,
    )),
  );
  const after = await world.ledger.current?.engine.verify({ workspace: 'world', log });
  if (after?.chain !== verified.chain) found.push({ invariant: 'I04', what: 'the log grew by what was in it already' });
  return found;
}

/** I12: where nothing waits, an app sees what the log says. */
function checkShown(
  { name, engine }: Examined['devices'][number],
  log: string,
  notes: ReadonlyMap<string, PlainNote>,
): Violation[] {
  // Only the world's own schema is folded plainly; others use these checkers, too.
  if (engine === null || !engine.state.store.tables.has('note')) return [];
  if (engine.database.prepare('SELECT 1 FROM main.hf_outbox LIMIT 1').get() !== undefined) return [];
  const isOfLog = new Set(
    engine.database
      .prepare('SELECT _id FROM main.note WHERE _log = ?')
      .all(log)
      .map((row) => row['_id']),
  );
  const rows = engine.database
    .prepareQuery('select * from note')
    .statement.all()
    .filter((row) => isOfLog.has(row['id']));
  return compareNotes(name, new Map(rows.map((row) => [row['id'] as string, noteOfRow(row)])), notes);
}

/**
 * I11, I12: with an honest ledger no state that was shown was ever another than the ledger's, nor was any fetched to put
 * that right. What is fetched for the first time is compared while it is half here, and may well differ then.
 */
function checkNeverOther(device: string, { database }: EngineDevice): Violation[] {
  return database
    .prepare(
      `SELECT kind, facts FROM main.hf_journal
       WHERE (kind = 'handshake' AND facts LIKE '%"differs"%' AND facts NOT LIKE '%"fetched"%') OR (kind = 'repair' AND facts ->> 'from' IS NOT NULL)`,
    )
    .all()
    .map(({ kind, facts }) => ({ invariant: 'I12', device, what: `its state was another one once: ${kind} ${facts}` }));
}

/** I26: what a device keeps of an event is what the ledger has, value for value. */
function checkBytes(
  device: string,
  { database }: EngineDevice,
  log: string,
  events: readonly StoredEvent[],
): Violation[] {
  const byVersion = new Map(
    events.map((event) => [event.version, event as unknown as Readonly<Record<string, unknown>>]),
  );
  return database
    .prepare('SELECT version, draft FROM main.hf_event WHERE log = ? AND draft IS NOT NULL')
    .all(log)
    .flatMap(({ version, draft }) => {
      const event = byVersion.get(version as number);
      const other = Object.entries(JSON.parse(draft as string) as Readonly<Record<string, unknown>>).find(
        ([key, value]) => JSON.stringify(value) !== JSON.stringify(event?.[key]),
      );
      return other === undefined
        ? []
        : [{ invariant: 'I26', device, what: `version ${version} has another ${other[0]} than at the ledger` }];
    });
}

/** I20, I28: at rest no permit of an earlier host is open, and only as many of this one's as it has kinds of requests. */
function checkEnded(device: string, { database }: EngineDevice): Violation[] {
  const open = database
    .prepare(
      `SELECT count(*) AS n, sum(p.generation < c.generation) AS earlier FROM main.hf_permit p, main.hf_coordinator c
       WHERE p.ended_at IS NULL`,
    )
    .get() as { readonly n: number; readonly earlier: number | null };
  const kept = database.prepare('SELECT count(*) AS n FROM main.hf_journal').get()?.['n'] as number;
  return [
    ...(kept <= JOURNAL_MAX ? [] : [{ invariant: 'I28', device, what: `its journal has ${kept} entries` }]),
    ...((open.earlier ?? 0) === 0
      ? []
      : [{ invariant: 'I20', device, what: `${open.earlier} permits of earlier hosts are open` }]),
    ...(open.n <= OPEN_PERMITS_MAX ? [] : [{ invariant: 'I28', device, what: `${open.n} permits are open at rest` }]),
  ];
}
const OPEN_PERMITS_MAX = 8;
const JOURNAL_MAX = 1_000;

/** Who reaches the ledger has its chain and its state, and nothing on the way (I07, I12, I21, I29). */
function checkAtRest(
  device: Examined['devices'][number],
  of: { readonly log: string; readonly head: number; readonly chain: string; readonly signature: string },
): Violation[] {
  const { name, engine } = device;
  const found: Violation[] = [];
  if (engine === null) return [{ invariant: 'I29', device: name, what: 'does not run' }];
  const log = engine.state.log(of.log);
  if (log === undefined) return found;
  if (log.head !== of.head || log.chain !== of.chain)
    found.push({
      invariant: 'I07',
      device: name,
      what: `${of.log}: head ${log.head} of ${of.head}, chain ${log.chain === of.chain ? 'equal' : 'other'}, phase ${engine.sync.status.phase} ${JSON.stringify(engine.sync.status.reason)} blocked ${JSON.stringify(log.blocked)}`,
    });
  else if (log.signature !== of.signature)
    found.push({ invariant: 'I12', device: name, what: 'another state than the ledger’s' });
  const flowing = engine.state.flowing(of.log);
  if (flowing > 0)
    found.push({
      invariant: 'I29',
      device: name,
      what: `${flowing} batches of ${of.log} still flow: ${JSON.stringify(engine.database.prepare('SELECT state, judge_at, retry_at, held_by, fault FROM main.hf_outbox').all().slice(0, 3))}`,
    });
  const open = engine.coordinator.obligations.open().filter(({ log }) => log === of.log || log === '*').length;
  if (open > 0)
    found.push({
      invariant: 'I21',
      device: name,
      what: `${open} obligations are still open: ${owedOf(engine)}`,
    });
  return found;
}

/** I30: `live` only with everything sent and the ledger's head; else a phase with a reason that fits what hurts. */
function checkHonest(
  world: Examined,
  device: Examined['devices'][number],
  of: { readonly log: string; readonly head: number; readonly chain: string },
): Violation[] {
  const { name, engine } = device;
  if (engine === null) return [];
  const { status } = engine.sync;
  const log = engine.state.log(of.log);
  const isSynced = engine.state.flowing(of.log) === 0 && log?.head === of.head && log.chain === of.chain;
  const say = (what: string): Violation => ({
    invariant: 'I30',
    device: name,
    what: `${what}: ${status.phase} ${JSON.stringify(status.reason ?? status.logs[0]?.reason ?? null)}, unsent ${status.unsent}, head ${log?.head} of ${of.head}`,
  });
  if (status.phase === 'live') return isSynced ? [] : [say('says live, and is not')];
  // What goes on says so of itself, whatever another log says.
  const own = status.logs.find((one) => one.log === of.log);
  if (own?.phase === 'live' && !isSynced) return [say('says that this log is live, and it is not')];
  if (!isApart(world, device, of.log) || world.lasting === null) return [];
  const code = (status.reason ?? status.logs.find(({ reason }) => reason !== null)?.reason)?.code;
  return isHonest(world, status.phase, code) ? [] : [say(`hurt by ${world.lasting.kind}, says`)];
}
