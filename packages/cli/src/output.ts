import type { Failure } from './failure.ts';

/**
 * What a command says. Results go to stdout, as text or, with `--json`, as one JSON value a line; progress and failures go
 * to stderr, progress only where a person watches.
 */
export interface Output {
  readonly json: boolean;
  readonly colour: boolean;
  line(text: string): void;
  /** One JSON value in `--json` mode; nothing otherwise. */
  value(value: unknown): void;
  table(rows: readonly Readonly<Record<string, unknown>>[]): void;
  progress(text: string): void;
  endProgress(): void;
  failure(failure: Failure): void;
}

export interface Streams {
  readonly out: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly err: { write(text: string): unknown; readonly isTTY?: boolean };
}

/** Text from other people must not steer a terminal: control characters are shown, not sent. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
export const printable = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return printable(value.replaceAll('\n', '⏎'));
  return typeof value === 'object' ? printable(JSON.stringify(value)) : String(value);
};

const CELL_MAX = 60;
const cut = (text: string): string => (text.length > CELL_MAX ? `${text.slice(0, CELL_MAX - 1)}…` : text);

export function createOutput({ json, streams }: { readonly json: boolean; readonly streams: Streams }): Output {
  const { out, err } = streams;
  const colour = out.isTTY === true && process.env['NO_COLOR'] === undefined;
  const showsProgress = err.isTTY === true && !json;
  let progressShown = false;
  const endProgress = () => {
    if (progressShown) err.write('\r\u001b[2K');
    progressShown = false;
  };
  return {
    json,
    colour,
    line: (text) => {
      endProgress();
      if (!json) out.write(`${text}\n`);
    },
    value: (value) => {
      if (json) out.write(`${JSON.stringify(value)}\n`);
    },
    table: (rows) => {
      endProgress();
      if (json) for (const row of rows) out.write(`${JSON.stringify(row)}\n`);
      else out.write(formatTable(rows));
    },
    progress: (text) => {
      if (!showsProgress) return;
      err.write(`\r\u001b[2K${cut(text)}`);
      progressShown = true;
    },
    endProgress,
    failure: (failure) => {
      endProgress();
      if (json)
        err.write(
          `${JSON.stringify({ error: { code: failure.code, what: failure.message, why: failure.why, next: failure.next } })}\n`,
        );
      else err.write(`${printable(failure.message)}  [${failure.code}]\n${failure.why}\n${failure.next}\n`);
      if (process.env['HOLDFAST_DEBUG'] !== undefined && failure.cause instanceof Error)
        err.write(`${failure.cause.stack}\n`);
    },
  };
}

export function formatTable(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const first = rows[0];
  if (first === undefined) return '(no rows)\n';
  const columns = Object.keys(first);
  const cells = rows.map((row) => columns.map((column) => cut(shown(row[column]))));
  const isNumeric = columns.map((column) => rows.every((row) => typeof row[column] === 'number'));
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...cells.map((row) => (row[at] as string).length)),
  );
  const format = (row: readonly string[]) =>
    row
      .map((cell, at) =>
        isNumeric[at] === true ? cell.padStart(widths[at] as number) : cell.padEnd(widths[at] as number),
      )
      .join('  ')
      .trimEnd();
  return [format(columns), widths.map((width) => '─'.repeat(width)).join('  '), ...cells.map(format)]
    .map((line) => `${line}\n`)
    .join('');
}
