import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import type { CommandContext } from '../main.ts';
import { openLedgerFolder } from '../open-ledger-folder.ts';
import { countOf, tokenFrom } from '../options.ts';

/** Commands about a ledger: over HTTP for what a caller may see, on its folder for what only its operator may. */
export function registerLedger(program: Command, context: CommandContext): void {
  const ledger = program.command('ledger').description('look at a ledger');

  ledger
    .command('status')
    .description('who this token is, what it may open, and what the ledger speaks')
    .option('--ledger <url>', 'the ledger', 'http://127.0.0.1:4800')
    .option('--token-file <file>', 'a file with the token; else HOLDFAST_TOKEN')
    .action(async (options: { ledger: string; tokenFile?: string }) => {
      const session = await ask(options, '/v1/session');
      const output = context.output();
      output.value(session);
      output.line(`account       ${String(session['account'])}`);
      output.line(`protocol      ${JSON.stringify(session['protocol'])}`);
      output.line(`capabilities  ${(session['capabilities'] as string[]).join(', ') || '(none beyond the base)'}`);
      output.line(`ledger time   ${String(session['serverTime'])}`);
      const { workspaces } = (await ask(options, '/v1/workspaces')) as {
        workspaces: readonly Record<string, unknown>[];
      };
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
    .requiredOption('--dir <folder>', 'the ledger’s folder')
    .requiredOption('--workspace <name>', 'the workspace')
    .action(async (options: { dir: string; workspace: string }) => {
      await using opened = await openLedgerFolder(options.dir);
      context
        .output()
        .table((await opened.engine.usage(options.workspace)) as unknown as readonly Record<string, unknown>[]);
    });

  ledger
    .command('verify')
    .description('compute chain, state and signature of a log from its events, and compare; reads the ledger’s folder')
    .requiredOption('--dir <folder>', 'the ledger’s folder')
    .requiredOption('--workspace <name>', 'the workspace')
    .option('--log <name>', 'the log', 'main')
    .option('--problems <n>', 'how many problems to show', countOf('--problems', 1, 100), 20)
    .action(async (options: { dir: string; workspace: string; log: string; problems: number }) => {
      await using opened = await openLedgerFolder(options.dir);
      const output = context.output();
      output.progress(`Reading ${options.workspace}/${options.log} …`);
      const report = await opened.engine.verify({ workspace: options.workspace, log: options.log });
      if (report === null)
        throw new Failure({
          code: 'not-found',
          what: `There is no log ${options.workspace}/${options.log} in ${options.dir}.`,
          why: 'The folder holds other workspaces or logs, or none.',
          next: '"holdfast ledger status" lists workspaces, "holdfast ledger logs --workspace NAME" the logs of one.',
          exitCode: EXIT.wrongUse,
        });
      output.value(report);
      output.line(`${report.events} events, ${report.entities} live entities`);
      output.line(`chain      ${report.chain}`);
      output.line(`signature  ${report.signature}`);
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
  throw Object.assign(new Error(String(body['message'])), { code: body['code'] });
}
