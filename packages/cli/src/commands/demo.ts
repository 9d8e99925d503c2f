import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inspectReplica } from '@holdfast/replica/inspect';
import { auditLog, factsOf } from '../demo/audit.ts';
import { type Child, startChild } from '../demo/child.ts';
import type { DemoConflict, DemoIssue, DeviceAsks } from '../demo/device-process.ts';
import type { LedgerAsks } from '../demo/ledger-process.ts';
import { tellResult } from '../demo/tell-result.ts';
import { type DemoFacts, judgeDemo } from '../demo/verdict.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { type Output, printable } from '../output.ts';

/**
 * The main job, in half a minute: a ledger and two devices as processes of their own, real issues, offline edits that merge
 * and one that a person must decide, a device killed in the middle of a push; and at the end a count of everything, from
 * the files. Exits 0 only if all of that happened, nothing was lost, nothing doubled, and all three agree to the last bit.
 */
export interface DemoOptions {
  /** Issues to import. */
  readonly issues: number;
  /** Keep the folder, to look around in it afterwards. */
  readonly keep: boolean;
  readonly file?: string;
}

/** Votes of the killed device, one commit each. */
const VOTES_MAX = 300;
/** How often the demonstration tries to catch a device with work on its way. Once is nearly always enough. */
const KILLS_MAX = 5;

/** One that merges, one that clashes, one that is deleted. */
const ISSUES_MIN = 3;

const DATA = resolve(import.meta.dirname, '../../../../data/tracker_issues.jsonl.gz');

export async function runDemo(options: DemoOptions, output: Output): Promise<ExitCode> {
  const file = options.file ?? DATA;
  if (!existsSync(file))
    throw new Failure({
      code: 'not-found',
      what: `There is no file ${file}.`,
      why: 'The demonstration imports real issues.',
      next: 'Run it inside the repository, or give a file of issues with --file.',
      exitCode: EXIT.wrongUse,
    });
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
  const stage = new Stage(output, folder);
  let isKept = options.keep;
  try {
    const exit = await play(stage, file, options);
    // Files that do not fit are the evidence.
    if (exit !== EXIT.done) isKept = true;
    return exit;
  } finally {
    await stage.close();
    if (isKept) tellKept(output, folder);
    else rmSync(folder, { recursive: true, force: true });
  }
}

function tellKept(output: Output, folder: string): void {
  output.value({ kept: folder });
  output.line(`\n   The files are in ${folder}. Look into them:`);
  for (const command of ['journal', 'doctor', 'query "select number, title, votes from issue limit 5"'])
    output.asIs(`   npx holdfast replica ${command} --dir ${join(folder, 'ben')}`);
  output.asIs(`   npx holdfast ledger verify --workspace demo --dir ${join(folder, 'ledger')}`);
}

type Ledger = Child<LedgerAsks>;
type Device = Child<DeviceAsks>;

class Stage {
  readonly output: Output;
  readonly folder: string;
  #children: { stop(): Promise<void> }[] = [];
  #scene = 0;

  constructor(output: Output, folder: string) {
    this.output = output;
    this.folder = folder;
  }

  scene(title: string): void {
    this.#scene += 1;
    this.output.line('');
    this.output.heading(`${this.#scene}  ${title}`);
  }

  say(text: string): void {
    this.output.line(`   ${printable(text)}`);
  }

  ledger(): Ledger {
    const child = startChild<LedgerAsks>(new URL('../demo/ledger-process.ts', import.meta.url), [
      join(this.folder, 'ledger'),
      '0',
    ]);
    this.#children.push(child);
    return child;
  }

  async device(name: string, url: string): Promise<Device> {
    const child = startChild<DeviceAsks>(new URL('../demo/device-process.ts', import.meta.url), [
      name,
      join(this.folder, name),
      url,
    ]);
    this.#children.push(child);
    await child.ask('status', null);
    return child;
  }

  async close(): Promise<void> {
    // Devices first, the ledger last.
    for (const child of this.#children.reverse()) await child.stop().catch(() => undefined);
    this.#children = [];
  }
}

async function play(stage: Stage, file: string, options: DemoOptions): Promise<ExitCode> {
  const committed = new Set<string>();
  const closed = new Set<string>();

  stage.scene('A ledger, and Ana’s device');
  const ledger = stage.ledger();
  const url = await ledger.ask('url', null);
  stage.say(`The ledger runs on ${url}, process ${ledger.pid}: SQLite, every answer synced to disk.`);
  const ana = await stage.device('ana', url);
  const imported = await ana.ask('import', { file, count: options.issues });
  if (imported.issues < ISSUES_MIN)
    throw new Failure({
      code: 'not-found',
      what: `There are ${imported.issues} issues to show.`,
      why: `The demonstration edits ${ISSUES_MIN} of them on two devices at once.`,
      next: 'Ask for more with --issues, or give a file that has more with --file.',
      exitCode: EXIT.wrongUse,
    });
  for (const action of imported.actions) committed.add(action);
  await ana.ask('settle', null);
  stage.say(
    `Ana’s device, process ${ana.pid}, imported ${imported.issues} real issues with ${imported.comments} comments.`,
  );

  stage.scene('Ben’s device joins');
  let ben = await stage.device('ben', url);
  await ben.ask('settle', null);
  const issues = await ben.ask('issues', { limit: 400 });
  stage.say(`Process ${ben.pid} has ${issues.length} issues in a SQLite file of its own, numbered by the ledger.`);
  const [both, titles, deleted] = issues as readonly [DemoIssue, DemoIssue, DemoIssue];

  stage.scene('Both go offline and edit the same issues');
  await Promise.all([ana.ask('offline', null), ben.ask('offline', null)]);
  const edit = async (who: Device, id: string, patch: Record<string, unknown>, label: string) => {
    committed.add(await who.ask('edit', { id, patch, label }));
    stage.say(label);
  };
  await edit(
    ana,
    both.id,
    { status: 'doing', labels: { add: ['reviewed'] } },
    `Ana: #${both.number} is "doing", labelled "reviewed"`,
  );
  await edit(
    ben,
    both.id,
    { assignee: 'ben', votes: { by: 1 }, labels: { add: ['bug'] } },
    `Ben: #${both.number} is his, +1, labelled "bug"`,
  );
  await edit(ana, titles.id, { title: `${titles.title} (as Ana sees it)` }, `Ana: #${titles.number} has another title`);
  await edit(
    ben,
    titles.id,
    { title: `${titles.title} (as Ben sees it)` },
    `Ben: #${titles.number} has yet another title`,
  );
  committed.add(await ana.ask('comment', { id: deleted.id, body: 'Still happens here.' }));
  committed.add(await ben.ask('comment', { id: deleted.id, body: 'Here too.' }));
  stage.say(`Both comment on #${deleted.number}`);

  stage.scene('They reconnect');
  await ana.ask('online', null);
  await ana.ask('settle', null);
  await ben.ask('online', null);
  await ben.ask('settle', null);
  await ana.ask('settle', null);
  const merged = (await ana.ask('issue', both.id)) as DemoIssue;
  stage.say(
    `#${merged.number} merged by field: ${merged.status}, ${merged.assignee}, ${merged.votes} vote, labels ${merged.labels.join(', ')}.`,
  );
  const conflicts = (await ben.ask('desk', null)).filter((one) => one.needs === 'answer');
  for (const conflict of conflicts) describe(stage, conflict);

  stage.scene('Ben decides');
  for (const conflict of conflicts) await ben.ask('resolve', { id: conflict.id, choice: 'mine' });
  await ben.ask('settle', null);
  const decided = (await ben.ask('issue', titles.id)) as DemoIssue;
  stage.say(`He keeps his: “${decided.title}”. Ana’s is in the history.`);

  stage.scene('Ben’s device is killed in the middle of a push');
  const votesFor = issues.slice(0, VOTES_MAX).map(({ id }) => id);
  let caught = 0;
  for (let round = 0; caught === 0 && round < KILLS_MAX; round += 1) {
    await ben.ask('offline', null);
    for (const action of await ben.ask('votes', { ids: votesFor })) committed.add(action);
    const before = await ben.ask('status', null);
    stage.say(`${before.unsent} votes wait on his disk. He reconnects …`);
    ben.tell('online', null);
    caught = await killWhileSending(ben, fileOf(stage.folder, 'ben'));
    stage.say(
      caught === 0
        ? `… and process ${ben.pid} is gone (SIGKILL), between two pushes. Once more:`
        : `… and process ${ben.pid} is gone (SIGKILL), ${caught} operations on their way and not answered: their outcome is unknown.`,
    );
    ben = await stage.device('ben', url);
    await ben.ask('settle', null);
  }
  await ana.ask('settle', null);
  stage.say(
    `Process ${ben.pid} opened the same file, asked the ledger about each of them under its old request id, and sent the rest.`,
  );

  // A batch that a resolution replaced is closed by a person; its replacement is in the log.
  for (const action of closedByPeople(fileOf(stage.folder, 'ben'))) closed.add(action);
  const audit = await auditLog(url, 'ana-token', committed, closed);
  const verified = await ledger.ask('verify', null);
  if (verified === null) throw new Error('The ledger has no log to verify.');
  await Promise.all([ana.stop(), ben.stop()]);
  return report(stage, { audit, verified, committed: committed.size, conflicts: conflicts.length, caught });
}

function describe(stage: Stage, conflict: DemoConflict): void {
  stage.say(`Parked for Ben, since both changed one field (${conflict.kind}):`);
  for (const { field, mine, theirs, by } of conflict.fields)
    stage.say(`   ${field}   ${by}: ${JSON.stringify(theirs)}   Ben: ${JSON.stringify(mine)}`);
}

/** The one replica file in a device's folder. */
function fileOf(folder: string, name: string): string {
  const dir = join(folder, name);
  const found = readdirSync(dir).find((file) => file.endsWith('.holdfast'));
  if (found === undefined) throw new Error(`There is no replica file in ${dir}.`);
  return join(dir, found);
}

/**
 * Watches the file from outside; kills as soon as work is on its way. How many operations the dead device has on their way
 * by its file: 0 if the answer was faster.
 */
async function killWhileSending(device: Device, file: string): Promise<number> {
  const until = performance.now() + 10_000;
  while (performance.now() < until) {
    using inspection = inspectReplica(file);
    const { sending, unsent } = inspection.counts();
    if (sending > 0 || unsent === 0) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await device.kill();
  using after = inspectReplica(file);
  return after.counts().sending;
}

function closedByPeople(file: string): readonly string[] {
  using inspection = inspectReplica(file);
  return inspection.closedByPeople();
}

function report(stage: Stage, counted: Omit<DemoFacts, 'ana' | 'ben'>): ExitCode {
  using anaFile = inspectReplica(fileOf(stage.folder, 'ana'));
  using benFile = inspectReplica(fileOf(stage.folder, 'ben'));
  const ana = factsOf(anaFile);
  const { result, exit } = judgeDemo({ ...counted, ana, ben: factsOf(benFile) });
  stage.scene('What the files say');
  tellResult({ result, ana, say: (text) => stage.say(text) }, stage.output);
  stage.output.line('');
  if (result.ok) {
    stage.say(
      'Next: "npx holdfast dev" starts a ledger to build against; docs/tasks/ has things people do, as programs.',
    );
    stage.say('"npx holdfast demo --keep" leaves the files, and says how to look into them.');
  } else stage.say('This is not what Holdfast promises. Please report it with the output above.');
  return exit;
}
