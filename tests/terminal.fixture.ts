import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** `script` of util-linux gives a program a real terminal; others of that name are asked differently. */
export const HAS_TERMINAL: boolean = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes(
  'util-linux',
);
if (!HAS_TERMINAL) console.log('skipped: no "script" of util-linux is here, which gives a program a terminal');

export interface Ran {
  readonly code: number;
  /** Everything that came out. */
  readonly out: string;
}

const quoted = (one: string): string => `'${one.replaceAll("'", "'\\''")}'`;

/** Runs a program with both outputs on a terminal of so many columns. */
export function inTerminal(
  command: readonly string[],
  { columns, cwd, env }: { readonly columns: number; readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<Ran> {
  const line = `stty cols ${columns} rows 24 && exec ${command.map(quoted).join(' ')}`;
  return ran(['script', '-qec', line, '/dev/null'], { cwd, env: { ...env, SHELL: '/bin/sh', TERM: 'xterm' } });
}

/** Runs a program whose outputs are pipes. */
export async function ran(
  [program, ...args]: readonly string[],
  around: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<Ran> {
  const child = spawn(program as string, args, { ...around, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code, out: out + err };
}

export interface Screen {
  /** What stands there at the end, line by line; the last one is where the cursor is. */
  readonly lines: readonly string[];
  /** What stood in a line, and in which, whenever it was wiped. */
  readonly wiped: readonly { readonly line: number; readonly text: string }[];
  /** Other control codes than those that it knows. */
  readonly unknown: readonly string[];
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const TOKEN = /\u001b\[[0-9;?]*[A-Za-z]|[\u0000-\u001f\u007f]|[^\u0000-\u001f\u007f]/gu;

/** What a terminal of so many columns shows of it: text that wraps, CR, LF and "wipe this line". */
export function screenOf(written: string, columns: number): Screen {
  const lines: string[][] = [[]];
  const wiped: { line: number; text: string }[] = [];
  const unknown: string[] = [];
  let [row, column] = [0, 0];
  const rowAt = (at: number): string[] => {
    lines[at] ??= [];
    return lines[at];
  };
  for (const [token] of written.matchAll(TOKEN)) {
    if (token === '\r') column = 0;
    else if (token === '\n') row += 1;
    else if (token === '\u001b[2K') {
      const line = rowAt(row).join('');
      if (line !== '') wiped.push({ line: row, text: line });
      lines[row] = [];
    } else if (token.length > 1 && token.startsWith('\u001b')) unknown.push(token);
    else if (token < ' ' || token === '\u007f') unknown.push(token);
    else {
      if (column === columns) [row, column] = [row + 1, 0];
      rowAt(row)[column] = token;
      column += 1;
    }
    rowAt(row);
  }
  return { lines: lines.map((line) => Array.from(line, (one) => one ?? ' ').join('')), wiped, unknown };
}
