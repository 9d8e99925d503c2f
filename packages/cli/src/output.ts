import type { Failure } from './failure.ts';
import { formatFacts, formatTable, printable, type Rows } from './table.ts';
import { wrapped } from './text-layout.ts';

export { printable } from './table.ts';

/**
 * What a command says. Results go to stdout, as text or, with `--json`, as one JSON value a line; progress and failures go
 * to stderr, progress only where a person watches. Text is laid out for the terminal's width and never cut.
 */
export interface Output {
  readonly json: boolean;
  /** Of the terminal that results go to; null where they go to a file or a pipe. */
  readonly width: number | null;
  line(text: string): void;
  /** A line that stands out, where results go to a terminal and nobody said NO_COLOR. */
  heading(text: string): void;
  /** A line that is copied or parsed, and so is never broken: a command, JSON. */
  asIs(text: string): void;
  /** One JSON value in `--json` mode; nothing otherwise. */
  value(value: unknown): void;
  table(rows: Rows): void;
  /** Named facts in lines of their own; nothing in `--json` mode. */
  facts(facts: Readonly<Record<string, unknown>>): void;
  progress(text: string): void;
  endProgress(): void;
  failure(failure: Failure): void;
}

/** The part of a stream that is used. */
interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Streams {
  readonly out: Stream;
  readonly err: Stream;
}

/** Narrower than this nothing can be read: the terminal may break lines itself. */
const WIDTH_MIN = 40;

/** `COLUMNS` says it for a pipe too; without it a pipe has no width. */
export function widthOfStream({ isTTY, columns }: Stream): number | null {
  const said = Number(process.env['COLUMNS']);
  const width = Number.isSafeInteger(said) && said > 0 ? said : isTTY === true ? columns : undefined;
  return width === undefined || width <= 0 ? null : Math.max(WIDTH_MIN, width);
}

export function createOutput({ json, streams }: { readonly json: boolean; readonly streams: Streams }): Output {
  const { out, err } = streams;
  const knowsCodes = process.env['TERM'] !== 'dumb';
  const isBold = out.isTTY === true && knowsCodes && !process.env['NO_COLOR'];
  const showsProgress = err.isTTY === true && knowsCodes && !json;
  const width = widthOfStream(out);
  let progressShown = false;
  const endProgress = () => {
    if (progressShown) err.write('\r\u001b[2K');
    progressShown = false;
  };
  const laidOut = (text: string, columns: number | null): string =>
    text
      .split('\n')
      .flatMap((line) => (columns === null ? [line] : wrapped(line, columns)))
      .map((line) => `${line}\n`)
      .join('');
  const asIs = (text: string) => {
    endProgress();
    if (!json) out.write(text);
  };
  return {
    json,
    width,
    line: (text) => asIs(laidOut(text, width)),
    heading: (text) => asIs(isBold ? `\u001b[1m${laidOut(text, width).trimEnd()}\u001b[0m\n` : laidOut(text, width)),
    asIs: (text) => asIs(`${text}\n`),
    value: (value) => {
      if (json) out.write(`${JSON.stringify(value)}\n`);
    },
    table: (rows) => {
      endProgress();
      if (json) for (const row of rows) out.write(`${JSON.stringify(row)}\n`);
      else out.write(formatTable(rows, width));
    },
    facts: (facts) => asIs(formatFacts(facts, width)),
    progress: (text) => {
      if (!showsProgress) return;
      // One line that is drawn over, and so must not wrap, however narrow: what does not fit is seen in a moment.
      const columns = Math.min(widthOfStream(err) ?? 80, err.columns || 80);
      err.write(`\r\u001b[2K${wrapped(text, Math.max(1, columns - 1))[0]}`);
      progressShown = true;
    },
    endProgress,
    failure: (failure) => {
      endProgress();
      if (json)
        err.write(
          `${JSON.stringify({ error: { code: failure.code, what: failure.message, why: failure.why, next: failure.next } })}\n`,
        );
      else {
        const { message, code, why, next } = failure;
        err.write(
          laidOut(`${printable(message)}  [${code}]\n${printable(why)}\n${printable(next)}`, widthOfStream(err)),
        );
      }
      if (process.env['HOLDFAST_DEBUG'] !== undefined && failure.cause instanceof Error)
        err.write(`${failure.cause.stack}\n`);
    },
  };
}
