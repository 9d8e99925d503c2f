import { createDrawnLine, type ProgressStream } from './drawn-line.ts';
import { formatRemaining } from './summary.ts';

/** How far a run is, on stderr: one line that is drawn over on a terminal; else a plain line now and then. */
export interface Progress {
  tell(of: { readonly done: number; readonly failed: number; readonly steps: number }): void;
  /** Before anything else is written. */
  clear(): void;
}

const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 10_000;

export function createProgress(parts: {
  readonly stream: ProgressStream;
  readonly nowMs: () => number;
  /** Null where the end is an hour, not a number of seeds. */
  readonly total: number | null;
}): Progress {
  const { stream, nowMs, total } = parts;
  const drawn = createDrawnLine(stream);
  const startedMs = nowMs();
  const everyMs = drawn.isShown ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
  let toldMs = startedMs;
  return {
    tell: ({ done, failed, steps }) => {
      const now = nowMs();
      if (now - toldMs < everyMs && done !== total) return;
      toldMs = now;
      const seconds = Math.max(0.001, (now - startedMs) / 1000);
      const left = total === null ? '' : `, ${formatRemaining(((total - done) * seconds) / done)} left`;
      const line = `${done}${total === null ? '' : `/${total}`} seeds, ${failed} failed${left}, ${Math.round(steps / seconds)} steps/s`;
      if (drawn.isShown) drawn.draw(line);
      else stream.write(`${line}\n`);
    },
    clear: () => drawn.clear(),
  };
}
