import type { Fault, Json } from '@holdfast/core';
import { endLocalCommits, type Finding, type Inspection, releaseHeld } from '@holdfast/replica/inspect';
import { EXIT } from '../exit-codes.ts';
import { Failure, toFailure } from '../failure.ts';
import type { CommandContext } from '../main.ts';
import { openHost, openInspection, openMeant } from '../open-replica.ts';
import type { Output } from '../output.ts';
import { fieldsOf, readPack, writePack } from '../read-write-files.ts';
import { settleWithin } from '../settle-within.ts';
import type { CommitOptions, DoctorOptions, QueryOptions, ReplicaOptions, WatchOptions } from './register-replica.ts';

/** What the commands of register-replica.ts do. Those that only look read the file beside a running host. */
export function status(options: ReplicaOptions, context: CommandContext): void {
  using inspection = openInspection(options);
  showStatus(inspection, context.output());
}

export function query(sql: string, options: QueryOptions, context: CommandContext): void {
  using inspection = openInspection(options);
  context.output().table(rowsOf(inspection, sql, (options.param ?? []).map(parameterOf)));
}

export function journal(options: ReplicaOptions & { readonly before?: number }, context: CommandContext): void {
  using inspection = openInspection(options);
  const entries = inspection.journal(options.before);
  context.output().table(entries.map(({ seq, at, kind, facts }) => ({ seq, at, kind, facts })));
}

export function desk(options: ReplicaOptions, context: CommandContext): void {
  using inspection = openInspection(options);
  const entries = inspection.desk();
  const output = context.output();
  if (output.json) for (const entry of entries) output.value(entry);
  else if (entries.length === 0) output.line('Nothing waits.');
  for (const entry of output.json ? [] : entries) {
    output.line(
      `${entry.id}  ${entry.kind}${entry.label === undefined ? '' : `  ${entry.label}`}  ${entry.entity.type}/${entry.entity.id}${entry.held > 0 ? `  (${entry.held} later writes wait for it)` : ''}`,
    );
    if (entry.fault !== undefined) output.line(`   ${whyOf(entry.fault)}`);
    for (const { field, base, mine, theirs, by } of entry.fields) {
      output.line(`   ${field}`);
      output.line(`      base    ${text(base)}`);
      output.line(`      mine    ${text(mine)}`);
      output.line(`      theirs  ${text(theirs)}${by === '' ? '' : ` (${by})`}`);
    }
  }
  if (!entries.some((entry) => entry.needs === 'answer')) return;
  output.line('The app decides: replica.desk.resolve(id, "mine"), "theirs", or the values to write.');
  context.exit(EXIT.personNeeded);
}

export function doctor(options: DoctorOptions, context: CommandContext): void {
  if (options.repair) repair(options, context);
  using inspection = openInspection(options);
  const output = context.output();
  output.progress('Reading the whole file …');
  const { findings, checked } = inspection.examine();
  output.value({ findings, checked });
  output.line(
    `Checked ${some(checked.logs, 'log')}, ${some(checked.events, 'event')}, ${some(checked.entities, 'entity', 'entities')}, ${some(checked.batches, 'unsent batch', 'unsent batches')}, ${some(checked.permits, 'permit')}, ${some(checked.obligations, 'obligation')}.`,
  );
  if (findings.length === 0)
    output.line('Everything fits: conservation, cursor, chain, projection, signature, permits.');
  for (const finding of findings) showFinding(finding, output);
  if (findings.length > 0) context.exit(EXIT.damageFound);
}

export function pack(options: ReplicaOptions & { readonly to: string }, context: CommandContext): void {
  using inspection = openInspection(options);
  const bytes = inspection.pack();
  writePack(options.to, bytes);
  const { unsent } = inspection.counts();
  context.output().value({ file: options.to, bytes: bytes.byteLength, batches: unsent });
  context
    .output()
    .line(`${some(unsent, 'unsent batch is', 'unsent batches are')} in ${options.to}, and still in the outbox, too.`);
}

export async function unpack(file: string, options: ReplicaOptions, context: CommandContext): Promise<void> {
  const bytes = readPack(file);
  await using host = await openHost(options);
  const { batches, already } = await host.replica.unpack(bytes);
  context.output().value({ batches, already });
  context
    .output()
    .line(`${some(batches, 'batch', 'batches')} taken, ${already} ${already === 1 ? 'was' : 'were'} here already.`);
}

export async function commit(
  entity: string,
  json: string,
  options: CommitOptions,
  context: CommandContext,
): Promise<void> {
  const fields = fieldsOf(json);
  await using host = await openHost(options);
  const output = context.output();
  const { id, actionId } = await host.write(entity, fields, options);
  output.line(`${entity}/${id} is durable on this device.`);
  if (!options.settle) {
    output.value({ entity, id, action: actionId });
    return;
  }
  const { settled, attention, obstacles, isGivenUp } = await settleWithin(host.replica, SETTLE_MS);
  output.value({ entity, id, action: actionId, settled, attention, obstacles });
  const earlier = await host.replica.write(actionId);
  const state = earlier?.state ?? 'pending';
  const reasons = obstacles.map(({ code }) => code);
  if (reasons.length === 0 && state === 'pending')
    reasons.push(host.replica.status.current.reason ?? 'no answer in time');
  if (IN_THE_LOG[state] !== undefined) output.line(IN_THE_LOG[state]);
  else output.line(`Not settled: ${[...(state === 'pending' ? [] : [state]), ...new Set(reasons)].join(', ')}.`);
  for (const { log, code } of obstacles)
    output.line(`${log ?? 'The replica'} waits: ${code}. Nothing is lost; docs/ERRORS.md says what to do.`);
  if (attention > 0) output.line('A person is needed: see "holdfast replica desk".');
  if (attention > 0 || !(settled || isGivenUp)) context.exit(EXIT.personNeeded);
  else if (!settled) context.exit(EXIT.notReachable);
  else if (IN_THE_LOG[state] === undefined) context.exit(EXIT.personNeeded);
}

/** What became of a write that needs nothing more; any other state is not settled. */
const IN_THE_LOG: Readonly<Record<string, string | undefined>> = {
  ordered: 'It is in the log.',
  local: 'It is of a local type: nothing is sent.',
};

/** How long "--settle" waits for a ledger that answers. */
const SETTLE_MS = 30_000;

/** PM10, ST2: the facts, the pack, then the end of what was left half done, and of what waits for nothing. */
function repair(options: ReplicaOptions & { readonly to: string }, context: CommandContext): void {
  const { file, inspection } = openMeant(options);
  using looked = inspection;
  const output = context.output();
  const found = looked.examine().findings.filter(({ next }) => next.includes('doctor --repair'));
  for (const finding of found) showFinding(finding, output);
  const pack = looked.pack();
  writePack(options.to, pack);
  output.line(`${some(looked.counts().unsent, 'unsent batch is', 'unsent batches are')} packed in ${options.to}.`);
  const ended = endLocalCommits(file, looked);
  const released = releaseHeld(file, looked);
  output.value({ pack: options.to, ended, released });
  for (const { permitId, log, operations } of ended)
    output.line(
      `Permit ${permitId} of ${log} is ended as owed; ${operations.length} operations are asked about again.`,
    );
  for (const action of released) output.line(`Write ${action} was held by what is not here any more; it goes on.`);
  if (ended.length + released.length === 0) output.line('There was nothing to end.');
}

function showStatus(inspection: Inspection, output: Output): void {
  const { owner } = inspection;
  const counts = inspection.counts();
  const logs = inspection.logs();
  output.value({ owner, counts, logs });
  output.facts({
    workspace: `${owner.workspace} of ${owner.account} at ${owner.ledger}`,
    replica: `${owner.replicaId}, generation ${owner.generation}`,
    unsent: `${counts.unsent} (${queuedOf(counts)} queued, ${counts.sending} sending, ${counts.waiting} waiting, ${counts.parked} parked, ${counts.held} held, ${counts.lost} lost)`,
    attention: counts.attention,
  });
  output.line('');
  if (!output.json)
    output.table(
      logs.map(({ log, stage, head, ledgerHead, blocked, lastSyncedAt }) => ({
        log,
        stage,
        head,
        'ledger head': ledgerHead,
        blocked: blocked?.code ?? '',
        'last synced': lastSyncedAt ?? 'never',
      })),
    );
}

/** What is left after the states that are counted: it is in line, and nothing stands in its way. */
const queuedOf = ({ unsent, sending, waiting, parked, held, lost }: ReturnType<Inspection['counts']>): number =>
  Math.max(0, unsent - sending - waiting - parked - held - lost);

const some = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

function showFinding({ check, log, what, next }: Finding, output: Output): void {
  output.line(`\n${check}${log === undefined ? '' : ` (${log})`}: ${what}`);
  output.line(`   ${next}`);
}

/** A refused query names what could have been asked for. */
function rowsOf(inspection: Inspection, sql: string, parameters: readonly Json[]): ReturnType<Inspection['query']> {
  try {
    return inspection.query(sql, parameters);
  } catch (cause) {
    const failure = toFailure(cause);
    if (failure.code !== 'query-refused') throw cause;
    const names = Object.keys(inspection.schema.entities).join(', ');
    throw new Failure({ ...partsOf(failure), next: `The tables of this replica: ${names}.`, cause });
  }
}

const partsOf = ({ code, message: what, why, exitCode }: Failure) => ({ code, what, why, exitCode });

export async function watch(sql: string, options: WatchOptions, output: Output): Promise<void> {
  const parameters = (options.param ?? []).map(parameterOf);
  let last = '';
  let shown = 0;
  using inspection = openInspection(options);
  let isStopped = false;
  process.once('SIGINT', () => {
    isStopped = true;
  });
  while (!isStopped) {
    const rows = rowsOf(inspection, sql, parameters);
    const now = JSON.stringify(rows);
    if (now !== last) {
      last = now;
      // One line a result: rows alone would not say where one ends, nor that nothing is left.
      output.value({ rows });
      if (!output.json) output.table(rows);
      shown += 1;
      if (options.times !== undefined && shown >= options.times) return;
    }
    await new Promise((resolve) => setTimeout(resolve, options.every));
  }
}

/** JSON where it is JSON, else the text itself: `--param doing` and `--param 3` both mean what they say. */
function parameterOf(given: string): Json {
  try {
    return JSON.parse(given) as Json;
  } catch {
    return given;
  }
}

/** The code, and what an app's hook or rule said with it. */
function whyOf({ code, facts }: Fault): string {
  const said = [facts?.['message'], facts?.['reason'], facts?.['rules']].find((one) => one !== undefined);
  return said === undefined ? code : `${code}: ${Array.isArray(said) ? said.join(', ') : String(said)}`;
}

const text = (value: unknown): string => (value === undefined || value === null ? '–' : JSON.stringify(value));
