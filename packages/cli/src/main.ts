import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { registerLedger } from './commands/ledger.ts';
import { registerDemo } from './commands/register-demo.ts';
import { registerImport } from './commands/register-import.ts';
import { registerReplica } from './commands/register-replica.ts';
import { registerSchema } from './commands/register-schema.ts';
import { registerServe } from './commands/register-serve.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { toFailure } from './failure.ts';
import { createOutput, type Output, type Streams, widthOfStream } from './output.ts';

/** What a command needs of its surroundings. */
export interface CommandContext {
  /** How this run speaks; with `--json`, in JSON. */
  output(): Output;
  /** The exit code, where it is not `done`. */
  exit(code: ExitCode): void;
}

/** Runs the command line. Resolves to the exit code; never throws. */
export async function run(
  args: readonly string[],
  streams: Streams = { out: process.stdout, err: process.stderr },
): Promise<number> {
  let code: ExitCode = EXIT.done;
  const isJson = args.includes('--json');
  const output = createOutput({ json: isJson, streams });
  const context: CommandContext = {
    output: () => output,
    exit: (next) => {
      code = next;
    },
  };
  const program = new Command('holdfast')
    .description('A local-first sync engine: every device a full SQLite replica, one ledger that orders them.')
    .version(versionOf(), '--version')
    .option('--json', 'one JSON value a line on stdout; errors as JSON on stderr')
    .configureOutput({
      writeOut: (text) => streams.out.write(text),
      writeErr: (text) => streams.err.write(text),
      getOutHelpWidth: () => widthOfStream(streams.out) ?? HELP_WIDTH,
      getErrHelpWidth: () => widthOfStream(streams.err) ?? HELP_WIDTH,
    })
    .exitOverride()
    .showHelpAfterError('Add --help to see what there is.')
    .addHelpText('after', EXIT_HELP);
  try {
    for (const register of GROUPS) register(program, context);
    await program.parseAsync(
      args.filter((one) => one !== '--json'),
      { from: 'user' },
    );
    return code;
  } catch (cause) {
    if (cause instanceof CommanderError) return cause.exitCode === 0 ? EXIT.done : EXIT.wrongUse;
    const failure = toFailure(cause);
    output.failure(failure);
    return failure.exitCode;
  } finally {
    output.endProgress();
  }
}

/** In the order of the help. Each brings its engine, which takes most of a second to load, only when it runs. */
const GROUPS: readonly ((program: Command, context: CommandContext) => void)[] = [
  registerDemo,
  registerServe,
  registerSchema,
  registerReplica,
  registerLedger,
  registerImport,
];

/** Where nobody says how wide. */
const HELP_WIDTH = 80;

const EXIT_HELP = `
Every command takes --json, and lays text out for the terminal (COLUMNS).
Errors have a code that docs/ERRORS.md explains. Exit codes:
  0  done       2  wrong use             4  damage found
  1  failed     3  a person is needed    5  not reachable`;

function versionOf(): string {
  const manifest = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
