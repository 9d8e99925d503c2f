/**
 * What a log may say of an error: what kind it was and where, never its words. A message may quote what somebody wrote (a
 * rule of the app does, and so does a JSON parser), and no payload is ever logged (S19).
 */
export interface LoggedError {
  /** `TypeError`; for what is no error, `thrown string`. */
  readonly name: string;
  /** A code of its maker: `ECONNREFUSED`, `full`. */
  readonly code?: string;
  /** SQLite's own sentence for its result code, one of a fixed list. */
  readonly sqlite?: string;
  /** `at append (file:///…/append.ts:89:12)`, the innermost first. */
  readonly at?: readonly string[];
  readonly cause?: LoggedError;
}

const FRAMES_MAX = 20;
const CAUSES_MAX = 3;

export function loggedError(cause: unknown, causesMax = CAUSES_MAX): LoggedError {
  if (!(cause instanceof Error)) return { name: `thrown ${typeof cause}` };
  const { code, errstr } = cause as { readonly code?: unknown; readonly errstr?: unknown };
  const at = framesOf(cause);
  return {
    name: isWord(cause.name) ? cause.name : 'Error',
    ...(isWord(code) ? { code } : {}),
    ...(code === 'ERR_SQLITE_ERROR' && typeof errstr === 'string' ? { sqlite: errstr } : {}),
    ...(at.length === 0 ? {} : { at }),
    ...(cause.cause === undefined || causesMax === 0 ? {} : { cause: loggedError(cause.cause, causesMax - 1) }),
  };
}

/** A name in a program, not a text. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z][\w-]{0,63}$/.test(value);

/** A stack begins with name and message as they were when it was taken. Where they cannot be cut off, it is left out. */
function framesOf({ name, message, stack = '' }: Error): readonly string[] {
  const at = message === '' ? 0 : stack.indexOf(message);
  if (at === -1 || at > name.length + 100) return [];
  return stack
    .slice(at + message.length)
    .split('\n')
    .filter((line) => /^ {4}at .{1,400}:\d+:\d+\)?$/.test(line))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim());
}
