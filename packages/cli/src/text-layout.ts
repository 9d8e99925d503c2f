/** How text fits a terminal. Nothing is ever cut: what is too wide goes on in the next line. */

/** What a terminal draws twice as wide, and what it draws on top of the character before. */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]/u;
const ON_TOP = /^(?:\p{M}|\p{Cf})$/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
const COLOUR = /\u001b\[[0-9;]*m/g;

/** In columns of a terminal. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text.replace(COLOUR, '')) width += ON_TOP.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

export const padEnd = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));
export const padStart = (text: string, width: number): string => ' '.repeat(Math.max(0, width - widthOf(text))) + text;

/**
 * Lines of at most `width` columns: broken at a space, else after a comma, else anywhere. Joined again they are the text,
 * but for the spaces at which it was broken. A text that begins with spaces, or with a label and two spaces, goes on under
 * its first word after them.
 */
export function wrapped(text: string, width: number): readonly string[] {
  if (widthOf(text) <= width) return [text];
  const lines: string[] = [];
  const hang = hangOf(text, width);
  let rest = text;
  while (widthOf(rest) > width) {
    const [line, after] = split(rest, width, lines.length === 0 ? hang : hang - 1);
    lines.push(line);
    rest = ' '.repeat(hang) + after;
  }
  return [...lines, rest];
}

/** Where a line goes on; none where that would leave less than half of the width. */
function hangOf(text: string, width: number): number {
  const [start = ''] = /^\s*(?:\S+(?: \S+){0,2} {2,})?/.exec(text) ?? [];
  const hang = widthOf(start);
  return hang > width / 2 ? 0 : hang;
}

/** At most `width` columns, and what is left; `hang` is where a break is too early to be of use. */
function split(text: string, width: number, hang: number): readonly [line: string, rest: string] {
  let used = 0;
  let end = 0;
  let space = -1;
  let comma = -1;
  for (const character of text) {
    const wide = widthOf(character);
    if (character === ' ' && end > hang) space = end;
    if (used + wide > width) break;
    used += wide;
    end += character.length;
    if (character === ',' && end > hang) comma = end;
  }
  if (space > 0) return [text.slice(0, space).trimEnd(), text.slice(space).trimStart()];
  // A break after the comma that is nearly at the start would leave one line nearly empty.
  const at = comma > end / 2 ? comma : end;
  return [text.slice(0, at), text.slice(at)];
}
