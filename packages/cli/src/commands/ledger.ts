import type { Engine } from '@holdfast/ledger';
import { type Command, Option } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import type { CommandContext } from '../main.ts';
import { openLedgerFolder } from '../open-ledger-folder.ts';
import { countOf, tokenFrom } from '../options.ts';

/** Commands about a ledger: over HTTP for what a caller may see, on its folder for what only its operator may. */
export function registerLedger(program: Command, context: CommandContext): void {
  const ledger = program.command('ledger').description('look at a ledger').addHelpText('after', WAYS_IN);

  ledger
    .command('status')
    .description('who this token is, what it may open, and what the ledger speaks')
    .option('--ledger <url>', 'the ledger', 'http://127.0.0.1:4800')
    .option('--token-file <file>', 'a file with the token; else HOLDFAST_TOKEN')
    .action(async (options: { ledger: string; tokenFile?: string }) => {
      const session = await ask(options, '/v1/session');
      const { workspaces } = (await ask(options, '/v1/workspaces')) as {
        workspaces: readonly Record<string, unknown>[];
      };
      const output = context.output();
      output.value({ ...session, workspaces });
      const { min, max } = session['protocol'] as { readonly min: number; readonly max: number };
      output.facts({
        account: session['account'],
        protocol: min === max ? min : `${min} to ${max}`,
        capabilities: (session['capabilities'] as string[]).join(', ') || '(none beyond the base)',
        'ledger time': session['serverTime'],
      });
      output.line('');
      if (!output.json) output.table(workspaces);
    });

  ledger
    .command('logs')
    .description('the logs of a workspace')
    .requiredOption('--workspace <name>', 'the workspace')
    .option('--ledger <url>', 'the ledger', 'http://127.0.0.1:4800')
    .option('--token-file <file>', 'a file with the token; else HOLDFAST_TOKEN')
    .action(async (options: { ledger: string; workspace: string; tokenFile?: string }) => {
      const { logs } = (await ask(options, `/v1/workspaces/${encodeURIComponent(options.workspace)}/logs`)) as {
        logs: readonly Record<string, unknown>[];
      };
      context.output().table(logs);
    });

  ledger
    .command('usage')
    .description('what each log of a workspace holds; reads the ledger’s folder')
    .addOption(folderOption())
    .requiredOption('--workspace <name>', 'the workspace')
    .action(async (options: { dir: string; workspace: string }) => {
      await using opened = await openLedgerFolder(options.dir);
      const { dir, workspace } = options;
      const usage = await opened.engine.usage(workspace);
      if (usage.length === 0)
        throw await notInFolder(opened.engine, { dir, what: `There is no workspace ${workspace}` });
      context.output().table(usage as unknown as readonly Record<string, unknown>[]);
    });

  ledger
    .command('verify')
    .description(
      'compare a log with its events: chain, state, signature, remembered requests, fences, counters; reads the ledger’s folder',
    )
    .addOption(folderOption())
    .requiredOption('--workspace <name>', 'the workspace')
    .option('--log <name>', 'the log', 'main')
    .option('--problems <n>', 'how many problems to show', countOf('--problems', 1, 100), 20)
    .action(async (options: { dir: string; workspace: string; log: string; problems: number }) => {
      await using opened = await openLedgerFolder(options.dir);
      const output = context.output();
      output.progress(`Reading ${options.workspace}/${options.log} …`);
      const report = await opened.engine.verify({ workspace: options.workspace, log: options.log });
      if (report === null)
        throw await notInFolder(opened.engine, {
          dir: options.dir,
          what: `There is no log ${options.workspace}/${options.log}`,
        });
      output.value(report);
      const { events, entities, chain, signature } = report;
      output.facts({ events, 'live entities': entities, chain, signature });
      output.line('');
      if (report.problems.length === 0) {
        output.line('Everything is as the events say.');
        return;
      }
      context.exit(EXIT.damageFound);
      if (!output.json)
        output.table(report.problems.slice(0, options.problems) as unknown as readonly Record<string, unknown>[]);
      output.line(
        'Nothing was changed. Stop the ledger, keep this folder, and restore a backup beside it; replicas will notice and keep their work.',
      );
    });
}

/** As "holdfast serve" has it. */
const folderOption = () =>
  new Option('--dir <folder>', 'the ledger’s folder').env('HOLDFAST_DIR').default('.holdfast/ledger');

const WAYS_IN = `
status and logs ask a running ledger: --ledger, and a token.
usage and verify read its folder, beside it or without it: --dir, no token.`;

/** Names what there is: who looks into a folder has no token to ask the ledger with. */
async function notInFolder(engine: Engine, { dir, what }: { readonly dir: string; readonly what: string }) {
  const names = (await engine.workspaces()).map(({ workspace }) => workspace);
  const listed = names.slice(0, NAMED_MAX).join(', ') + (names.length > NAMED_MAX ? ', …' : '');
  return new Failure({
    code: 'not-found',
    what: `${what} in ${dir}.`,
    why:
      names.length === 0
        ? 'This folder holds no workspace.'
        : `It holds ${names.length === 1 ? 'one workspace' : `${names.length} workspaces`}: ${listed}.`,
    next:
      names.length === 0
        ? 'Give the folder of the ledger’s "store" with --dir.'
        : 'Name one with --workspace; "holdfast ledger usage" lists the logs of one.',
    exitCode: EXIT.wrongUse,
  });
}
const NAMED_MAX = 20;

async function ask(
  options: { readonly ledger: string; readonly tokenFile?: string },
  path: string,
): Promise<Record<string, unknown>> {
  const token = tokenFrom(options);
  let response: Response;
  try {
    response = await fetch(`${options.ledger}${path}`, {
      redirect: 'error',
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    });
  } catch (cause) {
    throw Object.assign(new Error(`The ledger at ${options.ledger} did not answer.`, { cause }), {
      code: 'ledger-unreachable',
    });
  }
  if (response.headers.get('holdfast-protocol') === null)
    throw new Failure({
      code: 'network-untrusted',
      what: `Something answers at ${options.ledger}, and it is not a ledger.`,
      why: `It said ${response.status} without the header Holdfast-Protocol: a proxy, a login page, another program.`,
      next: 'Check the address.',
      exitCode: EXIT.notReachable,
    });
  const body = (await response.json()) as Record<string, unknown>;
  if (response.ok) return body;
  if (token === null && body['code'] === 'unauthenticated')
    throw new Failure({
      code: 'unauthenticated',
      what: 'The ledger wants a token, and none was given.',
      why: 'Neither --token-file nor HOLDFAST_TOKEN is set.',
      next: 'Set one of them. The token of a development ledger is "dev".',
      exitCode: EXIT.personNeeded,
    });
  const { path: at, reason } = (body['details'] ?? {}) as { readonly path?: string; readonly reason?: string };
  const what = `${String(body['message'])}${reason === undefined ? '' : ` "${at}": ${reason}.`}`;
  throw Object.assign(new Error(what), { code: body['code'] });
}
