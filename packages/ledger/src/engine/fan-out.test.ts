import { expect, test } from 'vitest';
import { createFanOut, type Frame, type Subscriber } from './fan-out.ts';
import type { AcceptedOperation } from './log-in-work.ts';
import type { LogRow } from './store-port.ts';

const REF = { workspace: 'acme', log: 'main' };
const logAt = (head: number): LogRow => ({
  log: 'main',
  identity: 'i',
  head,
  chain: `c${head}`,
  signature: '',
  epochs: [{ epoch: 'e', after: 0, why: 'created', at: '' }],
  state: 'open',
  movedTo: null,
  serials: {},
  createdAt: '',
});
const accepted = (firstVersion: number, count = 1): AcceptedOperation => ({
  row: {
    firstVersion,
    count,
    requestId: `r${firstVersion}`,
    actionId: '',
    replicaId: '',
    actor: '',
    recordedAt: '',
    origin: null,
    signature: '',
    bytes: 10,
    partEvents: null,
    identity: '',
    entityVersions: [],
    assigned: null,
  },
  events: Array.from({ length: count }, (_, at) => ({
    version: firstVersion + at,
    chain: `c${firstVersion + at}`,
    text: `{"version":${firstVersion + at}}`,
  })),
});

function listener(at: number | null): Subscriber & { readonly frames: Frame[]; behind: number } {
  return {
    at,
    frames: [],
    behind: 0,
    take(frame) {
      this.frames.push(frame);
      return true;
    },
    fellBehind() {
      this.behind += 1;
    },
  };
}

const fanOutWith = () =>
  createFanOut({
    reader: { page: () => undefined } as never,
    throughOf: (_identity, version, chain) => ({ version, chain }),
    logger: () => undefined,
  });

test('[RT1] a subscriber that another node left behind catches up before it is told more', () => {
  const fanOut = fanOutWith();
  const channel = fanOut.channel(REF, logAt(5));
  const present = listener(5);
  const catchingUp = listener(null);
  const ahead = listener(9);
  for (const one of [present, catchingUp, ahead]) fanOut.subscribe(channel, one);
  fanOut.appended(REF, logAt(5), [accepted(6)]);
  expect([present.at, present.frames.length, present.behind]).toEqual([6, 1, 0]);
  // Another node appended version 7 in between.
  fanOut.appended(REF, logAt(7), [accepted(8)]);
  expect([present.at, present.frames.length]).toEqual([6, 1]);
  expect(present.behind).toBeGreaterThan(0);
  expect([catchingUp.frames.length, ahead.frames.length]).toEqual([0, 0]);
  expect(channel.head).toBe(8);
});

test('[RT1 PG1] what a group accepted is told in frames of whole operations, each at most a page', () => {
  const fanOut = fanOutWith();
  const channel = fanOut.channel(REF, logAt(0));
  const one = listener(0);
  fanOut.subscribe(channel, one);
  fanOut.appended(REF, logAt(0), [accepted(1, 300), accepted(301, 300), accepted(601, 2)]);
  expect(one.frames.map(({ after, to }) => [after, to])).toEqual([
    [0, 300],
    [300, 602],
  ]);
  expect(JSON.parse(one.frames[0]?.text ?? '')).toMatchObject({
    type: 'events',
    log: 'main',
    through: { version: 300, chain: 'c300' },
  });
});

test('[RT2 I28] channels that nobody listens to are forgotten, the oldest first', () => {
  const fanOut = fanOutWith();
  const heard = fanOut.channel({ ...REF, log: 'heard' }, logAt(0));
  fanOut.subscribe(heard, listener(0));
  const first = fanOut.channel({ ...REF, log: 'first' }, logAt(0));
  for (let at = 0; at < 80; at += 1) fanOut.channel({ ...REF, log: `l${at}` }, logAt(0));
  expect(fanOut.channel({ ...REF, log: 'first' }, logAt(0))).not.toBe(first);
  expect(fanOut.channel({ ...REF, log: 'heard' }, logAt(0))).toBe(heard);
});
