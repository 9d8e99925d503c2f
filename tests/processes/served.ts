import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** `holdfast serve` and `holdfast dev` as people run them: a process of its own, known by its lines. */
export interface ServedProcess {
  readonly url: string;
  readonly adminUrl: string;
  /** What it wrote to stdout, line by line; complete once it has ended. */
  readonly lines: readonly string[];
  /** Resolves when a line with this text was written; lines come in order. */
  written(text: string): Promise<void>;
  readonly errors: () => string;
  /** Resolves to the exit code, or to the signal's name. */
  readonly ended: Promise<number | string>;
  /** Asks it to end, unless it has. */
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<number | string>;
}

const BIN = join(resolve(import.meta.dirname, '../..'), 'packages/cli/bin/holdfast.js');

export interface Surroundings {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

const surroundingsOf = ({ cwd, env = {} }: Surroundings) => ({
  cwd,
  env: { ...process.env, NO_COLOR: '1', ...env },
});

/** Starts it with `--json` and waits for the line that says where it listens. */
export async function startServed(args: readonly string[], around: Surroundings): Promise<ServedProcess> {
  const child: ChildProcess = spawn(process.execPath, [BIN, ...args, '--json'], {
    ...surroundingsOf(around),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  // Not at `exit`: lines may still be on their way.
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  const told = new Promise<{ readonly url: string; readonly admin: string }>((done, failed) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      lines.push(line);
      for (const look of waiting) look();
      if (line.startsWith('{"url":')) done(JSON.parse(line));
    });
    void ended.then((code) => failed(new Error(`It ended (${code}): ${errors}`)));
  });
  const { url, admin } = await told;
  return {
    url,
    adminUrl: admin,
    lines,
    written: (text) =>
      new Promise((done) => {
        const look = () => {
          if (!lines.some((line) => line.includes(text))) return;
          waiting.delete(look);
          done();
        };
        waiting.add(look);
        look();
      }),
    errors: () => errors,
    ended,
    stop: (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return ended;
    },
  };
}
