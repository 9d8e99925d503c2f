import { afterEach, expect, test, vi } from 'vitest';
import { createOutput } from './output.ts';

afterEach(() => vi.unstubAllEnvs());

/** What is written to terminals of so many columns. */
function said(columns: number, env: Readonly<Record<string, string | undefined>>): { out: string; err: string } {
  for (const name of ['NO_COLOR', 'TERM', 'COLUMNS']) vi.stubEnv(name, env[name]);
  const text = { out: '', err: '' };
  const stream = (name: 'out' | 'err') => ({
    write: (part: string) => (text[name] += part),
    isTTY: true,
    columns,
  });
  const output = createOutput({ json: false, streams: { out: stream('out'), err: stream('err') } });
  output.heading('A title');
  output.progress('12 issues, 345 comments …');
  output.progress('Sending …');
  output.line('Done.');
  return text;
}

test('[P8] a title is bold on a terminal, but with NO_COLOR; a terminal without codes gets neither that nor progress', () => {
  const BOLD = '\u001b[1mA title\u001b[0m\n';
  expect(said(80, { TERM: 'xterm' }).out).toBe(`${BOLD}Done.\n`);
  expect(said(80, { TERM: 'xterm', NO_COLOR: '' }).out).toBe(`${BOLD}Done.\n`);
  expect(said(80, { TERM: 'xterm', NO_COLOR: '1' }).out).toBe('A title\nDone.\n');
  expect(said(80, { TERM: 'dumb' })).toEqual({ out: 'A title\nDone.\n', err: '' });
});

test('[P8] progress never wraps, whatever the width of the terminal, and is wiped before a result', () => {
  const WIPE = '\r\u001b[2K';
  for (const [columns, env] of [
    [10, {}],
    [20, {}],
    [20, { COLUMNS: '100' }],
    [80, {}],
  ] as const) {
    const drawn = said(columns, { TERM: 'xterm', ...env }).err.split(WIPE);
    expect(drawn).toEqual(['', expect.stringMatching(/^12/), expect.stringMatching(/^Send/), '']);
    for (const line of drawn) expect(line.length).toBeLessThan(columns);
    expect(drawn[1] === '12 issues, 345 comments …').toBe(columns === 80);
  }
});
