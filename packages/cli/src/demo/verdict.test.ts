import { expect, test } from 'vitest';
import { createOutput } from '../output.ts';
import type { FileFacts } from './audit.ts';
import { tellResult } from './tell-result.ts';
import { type DemoFacts, judgeDemo } from './verdict.ts';

/** A run that ended well, as it was counted from the files. */
const FILE: FileFacts = {
  head: 40,
  chain: 'c1',
  signature: 's1',
  findings: 0,
  unsent: 0,
  obligationsOpened: 3,
  obligationsOpen: 0,
};
const GOOD: DemoFacts = {
  audit: { events: 40, operations: 36, merged: 2, lost: 0, doubled: 0 },
  verified: { log: 'main', events: 40, entities: 30, chain: 'c1', signature: 's1', problems: [] },
  ana: FILE,
  ben: FILE,
  committed: 36,
  conflicts: 1,
  caught: 3,
};

test('[I12 I13 I21] a run is good if everything was shown and everything is there', () => {
  expect(judgeDemo(GOOD)).toMatchObject({ exit: 0, result: { ok: true, chainsEqual: true, signaturesEqual: true } });
});

test('[P8] what was counted is told to people and to programs alike', () => {
  const told = (json: boolean): string => {
    let text = '';
    const stream = { write: (part: string) => (text += part) };
    const output = createOutput({ json, streams: { out: stream, err: stream } });
    const { result } = judgeDemo({ ...GOOD, ben: { ...FILE, chain: 'c2' }, audit: { ...GOOD.audit, lost: 5 } });
    tellResult({ result, ana: FILE, say: (line) => output.line(line) }, output);
    return text;
  };
  expect(JSON.parse(told(true))).toMatchObject({ ok: false, events: 40, lost: 5, doubled: 0, chainsEqual: false });
  const lines = told(false);
  for (const line of [
    /^events in the log +40$/m,
    /^lost +5$/m,
    /^doubled +0$/m,
    /^chains .* DIFFER$/m,
    /^state .* equal {2}s1…$/m,
  ])
    expect(lines).toMatch(line);
});

const BAD: readonly (readonly [string, DemoFacts])[] = [
  ['the ledger has another signature', { ...GOOD, verified: { ...GOOD.verified, signature: 's2' } }],
  ['one device has another signature', { ...GOOD, ben: { ...FILE, signature: 's2' } }],
  ['one device has another chain', { ...GOOD, ana: { ...FILE, chain: 'c2' } }],
  ['a commit is nowhere', { ...GOOD, audit: { ...GOOD.audit, lost: 1 } }],
  ['a commit is there in part, or twice', { ...GOOD, audit: { ...GOOD.audit, doubled: 1 } }],
  ['a file does not fit itself', { ...GOOD, ben: { ...FILE, findings: 1 } }],
  [
    'the ledger does not fit itself',
    {
      ...GOOD,
      verified: { ...GOOD.verified, problems: [{ what: 'entity', expected: 'present', found: 'absent' }] },
    },
  ],
  ['work is unsent', { ...GOOD, ana: { ...FILE, unsent: 1 } }],
  ['an outcome is not known yet', { ...GOOD, ben: { ...FILE, obligationsOpen: 1 } }],
  ['nothing was on its way at the kill', { ...GOOD, caught: 0 }],
  [
    'nobody asked for an outcome',
    { ...GOOD, ana: { ...FILE, obligationsOpened: 0 }, ben: { ...FILE, obligationsOpened: 0 } },
  ],
  ['nothing merged', { ...GOOD, audit: { ...GOOD.audit, merged: 0 } }],
  ['nobody had to decide', { ...GOOD, conflicts: 0 }],
];

test.each(BAD)('[I12 I13 I21] the demonstration exits 1 when %s', (_what, facts) => {
  expect(judgeDemo(facts)).toMatchObject({ exit: 1, result: { ok: false } });
});
