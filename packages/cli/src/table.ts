import { padEnd, padStart, widthOf, wrapped } from './text-layout.ts';

export type Rows = readonly Readonly<Record<string, unknown>>[];

const GAP = '  ';
/** A column of prose is not made narrower than this, and a row not higher: then each row gets lines of its own. */
const PROSE_MIN = 24;
const LINES_MAX = 6;
const RULE_MAX = 60;

/** Text from other people must not steer a terminal: control characters are shown, not sent. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
export const printable = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return printable(value);
  return typeof value === 'object' ? printable(JSON.stringify(value)) : String(value);
};
const inOneLine = (text: string): string => text.replaceAll('\n', '⏎').replaceAll('\t', ' ');

/**
 * Rows as people read them, whole. `width` is the terminal's, null where nobody looks (a file, a pipe): then one line a
 * row. A table where it fits; cells of several lines where that is enough; else each row as a list of its facts.
 */
export function formatTable(rows: Rows, width: number | null): string {
  if (rows.length === 0) return '(no rows)\n';
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => names.map((name) => inOneLine(shown(row[name]))));
  const natural = names.map((name, at) => Math.max(widthOf(name), ...cells.map((row) => widthOf(row[at] as string))));
  const widths = width === null || total(natural) <= width ? natural : narrowed(names, cells, natural, width);
  if (widths === null) return records(rows, names, width as number);
  const isNumeric = names.map((name) => rows.every((row) => typeof row[name] === 'number'));
  const high = cells.map((row) => row.map((cell, at) => wrapped(cell, widths[at] as number)));
  if (high.some((row) => row.some((lines) => lines.length > LINES_MAX))) return records(rows, names, width as number);
  const line = (parts: readonly (string | undefined)[]) =>
    parts
      .map((part = '', at) => (isNumeric[at] === true ? padStart : padEnd)(part, widths[at] as number))
      .join(GAP)
      .trimEnd();
  const body = high.flatMap((row) =>
    Array.from({ length: Math.max(...row.map((lines) => lines.length)) }, (_, at) =>
      line(row.map((lines) => lines[at])),
    ),
  );
  return text([line(names), widths.map((columns) => '─'.repeat(columns)).join(GAP), ...body]);
}

/** A list of named facts, whole: names in one column, and under each other what needs several lines. */
export function formatFacts(facts: Readonly<Record<string, unknown>>, width: number | null): string {
  const names = Object.keys(facts);
  const column = Math.max(...names.map(widthOf)) + GAP.length;
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - column);
  return text(
    names.flatMap((name) => {
      const lines = shown(facts[name])
        .split('\n')
        .flatMap((one) => wrapped(one.replaceAll('\t', ' '), room));
      return lines.map((one, at) => `${padEnd(at === 0 ? name : '', column)}${one}`.trimEnd());
    }),
  );
}

function records(rows: Rows, names: readonly string[], width: number): string {
  return rows
    .map((row, at) => {
      const facts = formatFacts(Object.fromEntries(names.map((name) => [name, row[name]])), width);
      return rows.length === 1 ? facts : `${rule(`── ${at + 1} of ${rows.length} `, width)}\n${facts}`;
    })
    .join('');
}

const rule = (title: string, width: number): string => title.padEnd(Math.min(width, RULE_MAX), '─');
const total = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

/**
 * Widths that fit, or null. No word is broken in a column: what has no spaces (an id, an instant, a hash) keeps its width;
 * the room that is left goes to those who need most.
 */
function narrowed(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  natural: readonly number[],
  width: number,
): readonly number[] | null {
  const least = names.map((name, at) => {
    const words = cells.flatMap((row) => (row[at] as string).split(/(?<=,)| /));
    return Math.max(widthOf(name), Math.min(natural[at] as number, PROSE_MIN), ...words.map(widthOf));
  });
  let room = width - total(least);
  if (room < 0) return null;
  const wants = natural.map((one, at) => one - (least[at] as number));
  const widths = [...least];
  for (const [at] of [...wants.entries()].sort(([, a], [, b]) => a - b)) {
    const sharers = wants.filter((want) => want >= (wants[at] as number)).length;
    const given = Math.min(wants[at] as number, Math.floor(room / sharers));
    widths[at] = (widths[at] as number) + given;
    room -= given;
  }
  return widths;
}
