import { expect, test } from 'vitest';
import { FAULTS } from './fault-classes.ts';
import { runSeed } from './run.ts';
import { replayCommand } from './shrink.ts';

/** Seeds that found a defect, with the faults that they drew then, by what it was. They run for ever: a world that failed once knows a way to fail.
 * Worlds had one log then. */
const FOUND: readonly (readonly [seed: number, faults: string, what: string])[] = [
  [2, 'crash,partition,loss,clock-jump', 'a push whose own events came by another way leaves nothing owed'],
  [
    5,
    'partition,loss,truncation,portal,ledger-restart,skew,clone,yesterday,people',
    'an operation that is owed twice is asked about once',
  ],
  [31, 'crash,loss,doubling,lateness,portal,people', 'a crash between two lost answers does not stop the loop'],
  [
    32,
    'crash,partition,doubling,lateness,clock-jump,yesterday,people',
    'what a host owed when it died is closed by the events that came meanwhile',
  ],
  [35, 'loss,lateness', 'a lossy network alone leaves nothing owed and nothing waiting'],
  [36, 'one-way,lateness,skew,yesterday,people', 'work that others did already is in the log by their hands'],
  [
    349,
    'crash,loss,truncation,portal,ledger-restart',
    'an owed page whose events came by socket is fetched once more, and closed',
  ],
  [
    202,
    'partition,doubling,portal,clock-jump,skew,people,take-over,transfer',
    'what waited for a person comes after later work that did not',
  ],
  [33, 'crash,partition,loss,sign-out,take-over,transfer', 'whoever has refused work signs in again, too'],
  [
    330,
    'partition,one-way,doubling,clock-jump,clone,transfer',
    'a disk that is full ends no hand-over, and it is told',
  ],
];

/** With what was not healed then. */
test('[I30] seed 103425: of a network that carries one way only, an older broken answer is not the reason', async () => {
  const options = {
    faults: ['lateness', 'truncation', 'skew', 'yesterday', 'people'],
    lasting: 'one-way',
    logs: 1,
  } as const;
  const { violations } = await runSeed(103425, options);
  expect(violations, replayCommand(103425, options)).toEqual([]);
});

for (const [seed, drawn, what] of FOUND)
  test(`[I21 I29] seed ${seed}: ${what}`, async () => {
    const faults = FAULTS.filter((fault) => drawn.split(',').includes(fault));
    const { violations } = await runSeed(seed, { faults, logs: 1 });
    expect(violations, replayCommand(seed, { faults, logs: 1 })).toEqual([]);
  });

test('[I18 LK2] seed 527: a tab of a host that was outranked is told, and shows what the next host shows', async () => {
  const options = { faults: ['one-way', 'clock-jump', 'clone', 'people', 'take-over', 'tab'] } as const;
  const { violations } = await runSeed(527, options);
  expect(violations, replayCommand(527, options)).toEqual([]);
});

test('[I12 HL4] seed 54: a ledger rewound twice while a replica repairs to it is adopted, and the repair ends', async () => {
  const faults = [
    'crash',
    'partition',
    'one-way',
    'lateness',
    'truncation',
    'ledger-restart',
    'clone',
    'rewind',
  ] as const;
  const { violations, counts } = await runSeed(54, { faults, logs: 1 });
  expect(violations, replayCommand(54, { faults, logs: 1 })).toEqual([]);
  expect(counts['adopted']).toBeGreaterThan(0);
});

test('[I03 I13 HL4] seeds 1000 to 1023: a ledger that is rewound again and again is adopted, and nobody’s work is called done', async () => {
  const faults = ['crash', 'loss', 'people', 'rewind'] as const;
  for (let seed = 1000; seed <= 1023; seed += 1) {
    const { violations } = await runSeed(seed, { faults, steps: 60, logs: 1 });
    expect(violations, replayCommand(seed, { faults, steps: 60, logs: 1 })).toEqual([]);
  }
});

/** With a ledger that is put back, copied files and crashes at once. */
const REWOUND = ['crash', 'loss', 'people', 'rewind', 'partition', 'clone'] as const;
const FOUND_REWOUND: readonly (readonly [ids: string, seed: number, steps: number, what: string])[] = [
  ['I21 BS4', 2061, 60, 'a page of a first state of a history that is gone is owed no more once a first state is here'],
  ['I21 BS4', 2282, 60, 'nor if the log is empty by then, and no page is asked for at all'],
  ['I12 BS2', 2213, 60, 'what another fetch was compared with does not swap in one that nobody compared'],
  ['I30 HL4', 2021, 60, 'what a person adopted is told as changed no more, though nobody answers'],
  ['I29 HL4', 5416, 60, 'what was made on a state that came whole is offered to an adopted history that never knew it'],
  ['I29 HL4', 5356, 60, 'what waits for other work is offered to an adopted history, too'],
  ['I13 HL1', 5307, 60, 'what both histories have is not judged as lost, and then closed though it is in the log'],
  ['I30 HL4', 5886, 60, 'what a person adopted is told as changed no more, also if it changed while the host ran'],
  [
    'I03 HL1',
    2272,
    60,
    'work whose acknowledgement came, but never its events, is offered again if the ledger loses it',
  ],
  ['I03 HL4', 6954, 60, 'what only lost events have done, and a person freed meanwhile, is not called done'],
];

for (const [ids, seed, steps, what] of FOUND_REWOUND)
  test(`[${ids}] seed ${seed}: ${what}`, async () => {
    const options = { faults: REWOUND, steps, logs: 1 };
    const { violations, counts } = await runSeed(seed, options);
    expect(violations, replayCommand(seed, options)).toEqual([]);
    expect(counts['adopted']).toBeGreaterThan(0);
  });

for (const [seed, options] of [
  [1000982, { steps: 77, devices: 2, faults: 'partition,one-way,doubling,yesterday,people,take-over,tab' }],
  [
    1000466,
    { steps: 75, faults: 'one-way,loss,doubling,truncation,portal,ledger-restart,skew,sign-out,take-over,tab' },
  ],
] as const)
  test(`[I18 LK2] seed ${seed}: a tab of a host that was outranked while idle shows what the next host shows`, async () => {
    const faults = FAULTS.filter((fault) => options.faults.split(',').includes(fault));
    const all = { ...options, faults, lasting: null };
    const { violations } = await runSeed(seed, all);
    expect(violations, replayCommand(seed, all)).toEqual([]);
  });

/** With the classes that they drew then, or were given. */
test.each([
  [
    2000322,
    'crash, partition, one-way, loss, portal, clock-jump, yesterday, people, sign-out, take-over, transfer, tab',
    'a file that is closed while its host still ends does not end the process (F13)',
  ],
  [
    2002146,
    'crash, one-way, loss, doubling, truncation, skew, clone, people, take-over, tab',
    'a file that is closed while its host still ends does not end the process (F13)',
  ],
  [
    2001426,
    'crash, partition, one-way, portal, clock-jump, clone, yesterday, revoke, tab',
    'work that a copy brought into the log is not under the request of its twin',
  ],
  [
    2001706,
    'doubling, lateness, truncation, ledger-restart, skew, clone, yesterday, people, take-over, revoke',
    'who makes again, by its natural key, what was deleted before he fetched it, takes nothing back',
  ],
  [
    11000099,
    'crash, partition, loss, doubling, skew, clone, people, sign-out, freeze',
    'whoever probes the ledger asks with a session that lasts',
  ],
  [
    11000231,
    'crash, one-way, loss, truncation, clone, people, transfer, revoke, tab-people, kill',
    'of work that is given up in the middle of a chain, what was built on it names nothing of itself (ST3)',
  ],
  [
    12001092,
    'one-way, doubling, lateness, portal, ledger-restart, skew, clone, people, take-over, revoke, tab-people, power-cut, rewind',
    'an answer from before the ledger lost its history confirms nothing (HL1)',
  ],
  [
    13000309,
    'loss, doubling, clock-jump, skew, clone, yesterday, people, disk-full, freeze',
    'an undo that leaves all as others made it is told to every tab (CM7)',
  ],
  [25, 'disk-full', 'a push that is given up while its lane rests is asked about (PM7, PM12)'],
  [195, 'disk-full, lateness, people', 'a page of a state that came whole meanwhile is owed no more (PM7)'],
  [
    4000170,
    'partition, one-way, doubling, portal, ledger-restart, skew, yesterday, people, sign-out, revoke, tab-people, kill, power-cut',
    'what waits for an answer of its own does not go out because what it was made on was discarded (ST3, OB6)',
  ],
  [
    4000161,
    'crash, one-way, loss, doubling, lateness, ledger-restart, clock-jump, clone, sign-out, take-over, transfer, revoke, tab, tab-people, power-cut',
    'an equal create after a deletion is the same as the first, and has no effect',
  ],
  [210, 'disk-full, lateness, people, transfer, crash', 'a handshake that is given up is made again (PM7, PM12)'],
] as const)('[I13 I21 I29] seed %i (%s): %s', async (seed, drawn, _what) => {
  const faults = FAULTS.filter((fault) => drawn.split(', ').includes(fault));
  const { violations } = await runSeed(seed, { faults });
  expect(violations, replayCommand(seed, { faults })).toEqual([]);
});

/** People act in tabs; each with the faults in the order in which they were given. */
for (const [seed, ids, faults, what] of [
  [
    8,
    'I18 CM7',
    ['tab', 'tab-people', 'people', 'partition', 'lateness', 'crash'],
    'a tab that commits and gives up at once is told what can be taken back',
  ],
  [
    352,
    'I18 LK2',
    ['tab-people', 'people', 'partition', 'take-over', 'yesterday', 'crash'],
    'a tab of a host that was outranked lists the desk of the next one',
  ],
] as const)
  test(`[${ids}] seed ${seed}: ${what}`, async () => {
    const { violations } = await runSeed(seed, { faults });
    expect(violations, replayCommand(seed, { faults })).toEqual([]);
  });
