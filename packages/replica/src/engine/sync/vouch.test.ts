import { expect, test } from 'vitest';
import { troubleOf } from './trouble.ts';
import { readAnswer } from './vouch.ts';

const MARKS = {
  'content-type': 'application/json; charset=utf-8',
  'holdfast-protocol': '1',
  'holdfast-permit': '5',
  'holdfast-log': 'ab'.repeat(32),
};
const EXPECTED = { permit: 5, namesLog: true, identity: 'ab'.repeat(32), nowMs: 0 };
type Given = {
  readonly status?: number;
  readonly redirected?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
};

const read = ({ status = 200, redirected = false, headers = {}, text = '{}' }: Given) => {
  const all: Readonly<Record<string, string>> = { ...MARKS, ...headers };
  return readAnswer({ status, redirected, header: (name) => all[name.toLowerCase()] || null, text }, EXPECTED);
};
const refusalText = (code: string) => JSON.stringify({ code, message: 'no', requestId: 'r1' });

test('[LG10] with every mark it is the ledger speaking', () => {
  expect(read({})).toEqual({ kind: 'answered', body: {}, identity: 'ab'.repeat(32) });
});

test.each([
  ['another permit', { headers: { 'holdfast-permit': '4' } }],
  ['no permit', { headers: { 'holdfast-permit': '' } }],
  ['no protocol', { headers: { 'holdfast-protocol': '' } }],
  ['a protocol of tomorrow', { headers: { 'holdfast-protocol': '9' } }],
  ['a protocol that is no number', { headers: { 'holdfast-protocol': 'one' } }],
  ['no log', { headers: { 'holdfast-log': '' } }],
  ['another log', { headers: { 'holdfast-log': 'cd'.repeat(32) } }],
  ['no JSON type', { headers: { 'content-type': 'text/plain' } }],
  ['a page', { headers: { 'content-type': 'text/html' }, text: '<html>' }],
  ['half a body', { text: '{"epoch":' }],
  ['a doubled key', { text: '{"a":1,"a":2}' }],
  ['a followed redirect', { redirected: true }],
  ['a redirect', { status: 302 }],
  ['an opaque redirect', { status: 0 }],
] as const)('[LG10] %s leaves the outcome unknown', (_what, given: Given) => {
  expect(read(given).kind).toBe('unknown');
});

test('[LG10] a refusal counts only with its marks, and needs no log identity', () => {
  expect(read({ status: 409, headers: { 'holdfast-log': '' }, text: refusalText('moved') }).kind).toBe('refused');
  expect(read({ status: 409, headers: { 'holdfast-permit': '' }, text: refusalText('moved') }).kind).toBe('unknown');
  expect(read({ status: 409, text: '{"error":"no"}' }).kind).toBe('unknown');
});

test('[LG12] a ledger that speaks only a later protocol is still heard to say so', () => {
  const answer = read({ status: 426, headers: { 'holdfast-protocol': '2' }, text: refusalText('update-needed') });
  expect(answer.kind).toBe('refused');
});

test('[PM4] 5xx and 429 say nothing definite, even with every mark', () => {
  for (const [status, code] of [
    [500, 'internal'],
    [503, 'shutting-down'],
    [429, 'rate-limited'],
  ] as const) {
    const answer = read({ status, headers: { 'retry-after': '3' }, text: refusalText(code) });
    expect(answer).toMatchObject({ kind: 'unknown', fault: { code }, retryAfterMs: 3_000 });
  }
});

test.each([
  ['unauthenticated', 401, { next: 'sign-in', suspected: false }],
  ['stale-generation', 409, { next: 'renew' }],
  ['replica-cloned', 409, { next: 'renew' }],
  ['stale-permit', 409, { next: 'reissue' }],
  ['history-changed', 409, { next: 'ask' }],
  ['moved', 410, { next: 'ask' }],
  ['deleted', 410, { next: 'ask' }],
  ['below-floor', 410, { next: 'ask' }],
  ['not-found', 404, { next: 'ask' }],
  ['not-allowed', 403, { next: 'ask' }],
  ['too-large', 413, { next: 'shrink', definite: true }],
  ['malformed', 400, { next: 'unreadable' }],
  ['other-account', 409, { next: 'wait-whole', phase: 'other-account' }],
  ['update-needed', 426, { next: 'wait-whole', phase: 'update-needed' }],
  ['a-code-of-tomorrow', 418, { next: 'retry' }],
] as const)('[LG11] the ledger refuses with %s', (code, status, expected) => {
  const answer = read({ status, text: refusalText(code) });
  expect(answer.kind).toBe('refused');
  if (answer.kind !== 'answered') expect(troubleOf(answer)).toMatchObject(expected);
});

test('[AC1 F112] what looks like sign-in but is not the ledger is a suspicion', () => {
  const page = { 'content-type': 'text/html' };
  for (const given of [{ status: 401, headers: page }, { status: 302 }, { headers: page, text: '<html>' }]) {
    const answer = read(given);
    if (answer.kind === 'answered') throw new Error('not vouched for');
    expect(troubleOf(answer)).toMatchObject({ next: 'sign-in', suspected: true });
  }
});

test('[OB2] 413 of somebody on the way asks for a smaller grouping, and proves nothing', () => {
  const answer = read({ status: 413, headers: { 'content-type': 'text/html', 'holdfast-protocol': '' } });
  if (answer.kind === 'answered') throw new Error('not vouched for');
  expect(troubleOf(answer)).toMatchObject({ next: 'shrink', definite: false });
});
