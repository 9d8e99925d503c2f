import type { EventDraft, StoredEvent } from '@holdfast/core';
import type { EngineDevice } from '@holdfast/replica/testing/engine';
import { isApart, isHonest } from './lasting.ts';
import { checkEntityChains, checkOwnOrder, compareNotes, foldPlainly, noteOfRow, type PlainNote } from './oracle.ts';
import { checkRepeats } from './repeat.ts';
import type { World } from './world.ts';

/** One broken promise, named by its invariant. */
export interface Violation {
  readonly invariant: string;
  readonly device?: string;
  readonly what: string;
}

/** What must hold at any moment: every open file fits itself (I02, I07, I08, I11, I13), and the status does not lie (I30). */
export function checkStep(world: World): Violation[] {
  const found: Violation[] = [];
  for (const device of world.devices) {
    const { name, engine } = device;
    if (engine === null) continue;
    found.push(...checkKept(device, engine));
    // A history that a person adopted stands where it stands, and may be shorter (HL4).
    if (!world.faults.has('rewind')) found.push(...checkForward(device, engine));
    for (const { check, what } of engine.examine().findings)
      found.push({ invariant: INVARIANT[check] ?? 'I11', device: name, what: `${check}: ${what}` });
    const counts = engine.state.counts();
    const { status } = engine.sync;
    if (status.unsent !== null && status.unsent !== counts.unsent)
      found.push({
        invariant: 'I30',
        device: name,
        what: `the status says ${status.unsent} unsent, there are ${counts.unsent}`,
      });
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
function checkKept({ name, resolved }: World['devices'][number], engine: EngineDevice): Violation[] {
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

/** I09: within one run and one epoch the head only grows. */
function checkForward(device: World['devices'][number], engine: EngineDevice): Violation[] {
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

interface LoggedAction {
  seen: number;
  readonly count: number;
  readonly requests: Set<string>;
}

interface WholeLog {
  readonly events: readonly StoredEvent[];
  readonly actions: Map<string, LoggedAction>;
  /** What events did, `delete <entity>` and `<entity> <field> <value>`. */
  readonly said: Set<string>;
  readonly head: number;
  readonly dense: boolean;
}

/** A whole log of the ledger, by action and by effect. */
async function readLog(world: World, log: string): Promise<WholeLog> {
  const actions = new Map<string, LoggedAction>();
  const said = new Set<string>();
  const all: StoredEvent[] = [];
  let after = 0;
  let dense = true;
  for (;;) {
    const answered = await world.ledger.current?.engine.events(
      { account: 'check', role: 'reader' },
      { workspace: 'world', log },
      { after },
    );
    if (answered === undefined || !answered.ok) return { events: all, actions, said, head: after, dense: false };
    const page = JSON.parse(answered.body) as {
      events: StoredEvent[];
      through: { version: number };
      more: boolean;
    };
    for (const event of page.events) {
      if (event.version !== after + 1) dense = false;
      after = event.version;
      all.push(event);
      const action = actions.get(event.actionId) ?? { seen: 0, count: event.count, requests: new Set<string>() };
      action.seen += 1;
      action.requests.add(event.requestId);
      actions.set(event.actionId, action);
      for (const effect of effectsOf(event)) said.add(effect);
    }
    if (!page.more) return { events: all, actions, said, head: after, dense };
  }
}

/** What an event makes true, where doing it twice is doing it once. */
function effectsOf({ entityType, entityId, change }: EventDraft): readonly string[] {
  const entity = `${entityType} ${entityId}`;
  if (change.op === 'delete') return [`delete ${entity}`];
  if (change.op === 'create' || change.op === 'restore') return Object.entries(change.fields).map(effectOn(entity));
  const unset = (change.op === 'update' ? (change.unset ?? []) : []).map((field) => [field, null] as const);
  return [...Object.entries(change.set ?? {}), ...unset].map(effectOn(entity));
}

const effectOn =
  (entity: string) =>
  ([field, value]: readonly [string, unknown]): string =>
    `${entity} ${field} ${JSON.stringify(value)}`;

/** An action of which theirs did all is not sent: then all that it said stands in the log, by other hands. */
const isSaidByOthers = (drafts: readonly EventDraft[] | undefined, said: ReadonlySet<string>): boolean =>
  drafts !== undefined &&
  drafts.length > 0 &&
  drafts.every((draft) => {
    const effects = effectsOf(draft);
    const { change } = draft;
    if (change.op === 'update' && (change.inc ?? change.add ?? change.remove) !== undefined) return false;
    return effects.length > 0 && effects.every((one) => said.has(one));
  });

/** Nobody can tell a device that stands apart that the ledger was put back, or it could not write that down. */
const mayNotKnow = (world: World, device: World['devices'][number], log: string): boolean =>
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

/** What must hold at rest, after faults have stopped. */
export async function checkQuiet(world: World): Promise<Violation[]> {
  const found = checkStep(world);
  const stands = new Set<string>();
  for (const log of world.logs) {
    const whole = await readLog(world, log);
    for (const action of whole.actions.keys())
      if (stands.has(action)) found.push({ invariant: 'I04', what: `action ${action} stands in two logs` });
      else stands.add(action);
    found.push(...(await checkLog(world, log, whole)));
  }
  for (const { name, engine, resolved } of world.devices)
    for (const action of resolved)
      if (engine !== null && engine.state.outcome(action) === undefined && !stands.has(action))
        found.push({ invariant: 'I01', device: name, what: `the durable commit ${action} is nowhere` });
  return found;
}

/** One log, and where everybody stands in it. */
async function checkLog(world: World, log: string, whole: WholeLog): Promise<Violation[]> {
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
  { name, engine }: World['devices'][number],
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

/** Who reaches the ledger has its chain and its state, and nothing on the way (I07, I12, I21, I29). */
function checkAtRest(
  device: World['devices'][number],
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
  world: World,
  device: World['devices'][number],
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
