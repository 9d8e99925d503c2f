import type { Random } from './ports.ts';

/**
 * Rank keys: texts in base 62 that sort by their code units, with always room for another between two of them
 * (fractional indexing, after D. Greenspan, "Implementing Fractional Indexing", 2017). A random tail keeps two devices
 * that insert at one place offline from making the same key.
 *
 * Length, measured: 8 at the ends of a list, however often; 15 after 10,000 insertions at random places; one digit more
 * for every five insertions at one and the same place between two others (229 after 1,000).
 */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE = DIGITS.length;
const TAIL_DIGITS = 3;
/** The first digits count like a number at the ends of a list, so that appending and prepending never lengthen keys. */
const HEAD_DIGITS = 5;
const HEADS = BASE ** HEAD_DIGITS;
const isRank = (text: string): boolean => /^[0-9A-Za-z]+$/.test(text) && !text.endsWith('0');

const digit = (text: string, at: number): number => (at < text.length ? DIGITS.indexOf(text[at] as string) : 0);

/**
 * A key strictly between two others; null is the open end. Neighbours that are equal, unordered or no keys of ours (two
 * devices met, or an app wrote them) count as: right after the first.
 */
export function rankBetween(after: string | null, before: string | null, random: Random): string {
  const low = after !== null && isRank(after) ? after : '';
  const high = before !== null && isRank(before) && before > low ? before : null;
  return `${atAnEnd(low, high) ?? middle(low, high)}${tail(random)}`;
}

/** The next head after the last row, or before the first; null between two rows, and where heads run out. */
function atAnEnd(low: string, high: string | null): string | null {
  if (low !== '' && high !== null) return null;
  const head = low === '' && high === null ? HEADS / 2 : high === null ? headOf(low) + 1 : headOf(high) - 1;
  if (head <= 0 || head >= HEADS) return null;
  let text = '';
  for (let rest = head, at = 0; at < HEAD_DIGITS; at += 1, rest = Math.floor(rest / BASE))
    text = DIGITS[rest % BASE] + text;
  return text;
}

function headOf(key: string): number {
  let head = 0;
  for (let at = 0; at < HEAD_DIGITS; at += 1) head = head * BASE + digit(key, at);
  return head;
}

/** The shortest key between; it never ends in `0`, so that there is always room below it. */
function middle(low: string, high: string | null): string {
  let prefix = '';
  for (let at = 0; ; at += 1) {
    const lowDigit = digit(low, at);
    const highDigit = high === null ? BASE : digit(high, at);
    if (high !== null && lowDigit === highDigit) {
      prefix += DIGITS[lowDigit];
      continue;
    }
    if (highDigit - lowDigit > 1) return prefix + DIGITS[lowDigit + Math.floor((highDigit - lowDigit) / 2)];
    // Neighbouring digits: stay under `high` and go above what is left of `low`.
    return prefix + DIGITS[lowDigit] + middle(low.slice(at + 1), null);
  }
}

function tail(random: Random): string {
  let text = '';
  for (let at = 0; at < TAIL_DIGITS; at += 1) text += DIGITS[1 + Math.floor(random.unit() * (BASE - 1))];
  return text;
}
