import { formatRemaining } from './summary.ts';

/** How far a run is, on stderr: one line that is written over on a terminal; else a plain line now and then. */
export interface Progress {
  tell(of: { readonly done: number; readonly failed: number; readonly steps: number }): void;
  end(): void;
}

const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 10_000;

export function createProgress(parts: {
  readonly write: (text: string) => void;
  readonly isTerminal: boolean;
  readonly nowMs: () => number;
  /** Null where the end is an hour, not a number of seeds. */
  readonly total: number | null;
}): Progress {
  const { write, isTerminal, nowMs, total } = parts;
  const startedMs = nowMs();
  const everyMs = isTerminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
  let toldMs = startedMs;
  let width = 0;
  return {
    tell: ({ done, failed, steps }) => {
      const now = nowMs();
      if (now - toldMs < everyMs && done !== total) return;
      toldMs = now;
      const seconds = Math.max(0.001, (now - startedMs) / 1000);
      const left = total === null ? '' : `, ${formatRemaining(((total - done) * seconds) / done)} left`;
      const line = `${done}${total === null ? '' : `/${total}`} seeds, ${failed} failed, ${Math.round(steps / seconds)} steps/s${left}`;
      if (!isTerminal) return write(`${line}\n`);
      write(`\r${line.padEnd(width)}`);
      width = line.length;
    },
    end: () => {
      if (isTerminal && width > 0) write(`\r${' '.repeat(width)}\r`);
    },
  };
}
