import { createHmac } from 'node:crypto';
import { type HandshakeAnswer, HEADERS, PROTOCOL, type Through, verifyAttest } from '@holdfast/core';
import type { SeededRandom } from '@holdfast/replica/testing';
import { worldDigest } from './digest.ts';
import { logKey, REFUSED_TITLE } from './ledger.ts';
import type { SentPush } from './repeat.ts';
import type { Violation } from './violation.ts';
import type { World } from './world.ts';

/**
 * What a ledger may never take, whoever sends it: requests that no device of ours makes. Each is a good request but for one
 * thing, and the good one is taken last, so that what is refused is refused for that thing. At rest, after everything else:
 * the log grows by a few events.
 */
interface Event {
  readonly [key: string]: unknown;
  readonly id: string;
}
interface Operation {
  readonly [key: string]: unknown;
  readonly events: readonly Event[];
}
interface Request {
  readonly token: string;
  readonly position: { readonly epoch: string; readonly version: number; readonly chain: string };
  readonly replica: {
    readonly id: string;
    readonly generation: number;
    readonly instance: string;
    readonly permit: number;
  };
  readonly operations: readonly Operation[];
}
interface Probe {
  readonly invariant: string;
  readonly what: string;
  /** Null: it cannot be made in this world. */
  readonly make: (good: Request, of: Ids) => Request | null;
}

interface Ids {
  /** 16 bytes as hex. */
  readonly hex: () => string;
  readonly uuid: () => string;
  /** A request that a device made, as the ledger knows it. */
  readonly known: Request;
}

const operation = (of: Ids): Operation => ({
  requestId: of.uuid(),
  actionId: of.uuid(),
  merge: 'fields',
  events: [created(of, 'probe')],
});
const created = (of: Ids, title: string): Event => ({
  id: of.uuid(),
  type: 'note.created',
  entityType: 'note',
  entityId: of.uuid(),
  change: { op: 'create', fields: { title, status: 'open', level: 0 } },
  base: 0,
  at: '2026-01-01T00:00:00.000Z',
  salt: of.hex(),
});
const withFirst = (request: Request, change: Readonly<Record<string, unknown>>): Request => ({
  ...request,
  operations: request.operations.map((one) => ({ ...one, ...change })),
});

const HALF = 'work was taken, half of which is refused';

const PROBES: readonly Probe[] = [
  { invariant: 'I24', what: 'a reader wrote', make: (good) => ({ ...good, token: 'ana/reader' }) },
  { invariant: 'I24', what: 'who has no access wrote', make: (good) => ({ ...good, token: 'eve/stranger' }) },
  { invariant: 'I24', what: 'whose access has ended wrote', make: (good) => ({ ...good, token: 'ana/former' }) },
  { invariant: 'I24', what: 'who shows nothing wrote', make: (good) => ({ ...good, token: '' }) },
  {
    invariant: 'I27',
    what: 'what expected another head was taken',
    make: (good) => withFirst(good, { expectedLogVersion: 0, scope: 'log' }),
  },
  {
    invariant: 'I06',
    what: 'a device of another history appended',
    make: (good, { hex }) => ({ ...good, position: { ...good.position, chain: `${hex()}${hex()}` } }),
  },
  {
    invariant: 'I17',
    what: 'work was taken without what it needs',
    make: (good, { uuid }) => withFirst(good, { needs: [uuid()] }),
  },
  {
    invariant: 'I04',
    what: 'an event of the log was taken once more, in other work',
    make: (good, { known }) =>
      withFirst(good, { events: (known.operations[0]?.events ?? []).map((event) => ({ ...event })) }),
  },
  {
    invariant: 'I04',
    what: 'an event id of the log was taken for another event',
    make: (good, { known }) =>
      withFirst(good, {
        events: (good.operations[0]?.events ?? []).map((event) => ({
          ...event,
          id: known.operations[0]?.events[0]?.id ?? event.id,
        })),
      }),
  },
  {
    invariant: 'I05',
    what: 'other work under a request id of the log was called accepted',
    make: (good, { known }) => withFirst(good, { requestId: known.operations[0]?.['requestId'] }),
  },
  {
    invariant: 'I02',
    what: HALF,
    make: (good, of) =>
      withFirst(good, { events: [...(good.operations[0]?.events ?? []), created(of, REFUSED_TITLE)] }),
  },
  {
    invariant: 'I19',
    what: 'a request under a permit that is past was taken',
    make: (good, { known }) => ({ ...good, replica: known.replica, token: known.token }),
  },
  {
    invariant: 'I22',
    what: 'a host of an earlier generation wrote',
    make: (good, { known: { replica, token } }) =>
      replica.generation > 1
        ? { ...good, token, replica: { ...replica, generation: replica.generation - 1, permit: 1_000_000 } }
        : null,
  },
  {
    invariant: 'I22',
    what: 'two files wrote under one name',
    make: (good, { known: { replica, token }, hex }) => ({
      ...good,
      token,
      replica: { ...replica, instance: hex(), permit: 1_000_000 },
    }),
  },
];

const URL_OF = 'http://ledger.test/v1/workspaces/world';

export async function probeLedger(
  world: World,
  pushes: readonly SentPush[],
  random: SeededRandom,
): Promise<Violation[]> {
  const last = pushes.at(-1);
  if (last === undefined || !world.ledger.up) return [];
  const ask = askLedger(world);
  const hex = (): string => Buffer.from(random.bytes(16)).toString('hex');
  const uuid = (): string => hex().replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-7$3-8$4-$5');
  const token = (last.headers['authorization'] ?? '').replace('Bearer ', '');
  const known = { ...(JSON.parse(last.body) as Omit<Request, 'token'>), token };
  const of = { hex, uuid, known };
  const good = (): Request => ({
    token: 'zoe/writer',
    position: known.position,
    replica: { id: hex(), generation: 1, instance: hex(), permit: 1 },
    operations: [operation(of)],
  });
  const found: Violation[] = [];
  for (const { invariant, what, make } of PROBES) {
    const request = make(good(), of);
    if (request === null) continue;
    if ((await isTaken(ask, request)) === true) found.push({ invariant, what: `ledger: ${what}` });
  }
  found.push(...(await whatIsRead(ask)), ...(await whatIsSaid(ask, { ...good(), known })));
  found.push(...(await whatIsSigned(ask, good().token)));
  found.push(...(await whatStandsBeside(ask, good, of)), ...(await whoIsOutranked(ask, good, of)));
  // Under other ids it is the same work: it is taken as what it is (LG3).
  const again = { ...good(), operations: known.operations.map((one) => ({ ...one, requestId: uuid() })) };
  if ((await isTaken(ask, again)) !== true)
    found.push({
      invariant: 'I04',
      what: 'ledger: work that is in the log came under another request id, and was refused',
    });
  // What is left of refused work would be in the state that the next work of the same push is judged on, and signed.
  const half = PROBES.find(({ what }) => what === HALF)?.make(good(), of);
  if (half !== undefined && half !== null)
    await isTaken(ask, { ...half, operations: [...half.operations, operation(of)] });
  if ((await isTaken(ask, good())) !== true) found.push({ invariant: 'I29', what: 'ledger: good work was refused' });
  const verified = await world.ledger.current?.engine.verify({ workspace: 'world', log: 'main' });
  for (const problem of verified?.problems ?? []) found.push({ invariant: 'I02', what: `ledger: ${problem.what}` });
  return found;
}

type Ask = (
  path: string,
  of: { readonly token: string; readonly body?: unknown },
) => Promise<{ status: number; body: unknown }>;

/** The ledger gathers what comes on the clock of the world: it answers once that moves. */
export function askLedger(world: World): Ask {
  return async (path, { token, body }) => {
    let answer: { status: number; body: unknown } | null = null;
    const asked = world.ledger
      .fetch(`${URL_OF}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          [HEADERS.permit]: '1',
          ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: { aborted: false, addEventListener: () => undefined, removeEventListener: () => undefined },
      })
      .then(async (response) => {
        answer = { status: response.status, body: JSON.parse(await response.text()) };
      });
    await world.time.until(() => answer !== null, 10_000);
    await asked;
    return answer ?? { status: 0, body: null };
  };
}

/** Whether all of it was accepted; null where the request as a whole was refused. */
async function isTaken(ask: Ask, { token, ...body }: Request): Promise<boolean | null> {
  const { status, body: answer } = await ask('/logs/main/push', { token, body });
  if (status !== 200) return null;
  const { results } = answer as { readonly results: readonly { readonly status: string }[] };
  return results.every((result) => result.status === 'accepted');
}

/** LG1, LG3, EV7: each operation of a push stands or falls alone, and what was refused left nothing that others build on. */
async function whatStandsBeside(ask: Ask, good: () => Request, of: Ids): Promise<Violation[]> {
  const found: Violation[] = [];
  const [known] = of.known.operations;
  const codes = await codesOf(ask, {
    ...good(),
    operations: [{ ...operation(of), events: (known?.events ?? []).map((event) => ({ ...event })) }, operation(of)],
  });
  if (codes.join() !== 'event-id-reused,accepted')
    found.push({ invariant: 'I04', what: `ledger: an event of the log in other work, beside good work: ${codes}` });
  const half = created(of, 'probe');
  const later = { ...half, id: of.uuid(), type: 'note.updated', base: 1, change: { op: 'update', set: { level: 1 } } };
  const [, onHalf] = await codesOf(ask, {
    ...good(),
    operations: [
      { ...operation(of), events: [half, created(of, REFUSED_TITLE)] },
      { ...operation(of), events: [later] },
    ],
  });
  if (onHalf === 'accepted') found.push({ invariant: 'I02', what: 'ledger: work on a half of refused work was taken' });
  return found;
}

/** LG8: who wrote last outranks all hosts of earlier generations, for good. */
async function whoIsOutranked(ask: Ask, good: () => Request, of: Ids): Promise<Violation[]> {
  const { replica } = good();
  let permit = 0;
  const nextPermit = (): number => {
    permit += 1;
    return permit;
  };
  const as = (generation: number): Request => ({
    ...good(),
    replica: { ...replica, generation, instance: `${generation}`.repeat(32), permit: nextPermit() },
    operations: [operation(of)],
  });
  const ends = [await isTaken(ask, as(1)), await isTaken(ask, as(2)), await isTaken(ask, as(1))];
  return ends.join() === 'true,true,'
    ? []
    : [{ invariant: 'I22', what: `ledger: hosts of generations 1, 2 and 1 wrote: ${ends}` }];
}

/** What became of each operation; none where the request as a whole was refused. */
async function codesOf(ask: Ask, { token, ...body }: Request): Promise<readonly string[]> {
  const { status, body: answer } = await ask('/logs/main/push', { token, body });
  if (status !== 200) return [];
  const { results } = answer as { readonly results: readonly { readonly status: string; readonly code?: string }[] };
  return results.map(({ status: end, code }) => code ?? end);
}

/** I24: who may not know of a log reads nothing of it, and is not told that there is one. */
async function whatIsRead(ask: Ask): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const token of ['eve/stranger', 'ana/former', ''])
    for (const path of ['/logs/main/events?after=0', '/logs/main/entities', '/logs', '/logs/nowhere/events?after=0']) {
      const { status } = await ask(path, { token });
      if (status !== (token === 'eve/stranger' ? 404 : 401))
        found.push({
          invariant: 'I24',
          what: `ledger: ${token || 'nobody'} asked for ${path} and was answered ${status}`,
        });
    }
  return found;
}

/** DG4: a position bears the signature of the log's key, and nobody takes another for it. The signature is worked out anew. */
async function whatIsSigned(ask: Ask, token: string): Promise<Violation[]> {
  const { body } = await ask('/logs/main/events?after=0', { token });
  const { through } = body as { readonly through?: Through };
  const { body: listed } = await ask('/logs', { token });
  const { logs = [] } = listed as { readonly logs?: readonly { readonly log: string; readonly identity: string }[] };
  const identity = logs.find(({ log }) => log === 'main')?.identity;
  if (identity === undefined || through === undefined)
    return [{ invariant: 'I24', what: 'ledger: a writer is not told where the log stands' }];
  const { version, chain, attest = '' } = through;
  const signed = createHmac('sha256', logKey())
    .update(Buffer.from(identity, 'hex'))
    .update(`${version}\n`)
    .update(Buffer.from(chain, 'hex'))
    .digest('hex');
  const forged = attest.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
  return [
    ...(attest === signed ? [] : [`ledger: the position at ${version} is not signed with the key of the log`]),
    ...(verifyAttest(logKey(), { identity, version, chain, attest: forged }, worldDigest)
      ? [`a forged signature of the position at ${version} passes`]
      : []),
  ].map((what) => ({ invariant: 'I24', what }));
}

/** DG2, DG5: of a wrong state and of another history a device is told so. */
async function whatIsSaid(
  ask: Ask,
  { token, position, replica }: Request & { readonly known: Request },
): Promise<Violation[]> {
  let { permit } = replica;
  const say = async (
    at: Request['position'],
    signature: string,
  ): Promise<HandshakeAnswer['logs'][number] | undefined> => {
    const logs = [{ log: 'main', positions: [at], signature }];
    const protocol = { min: PROTOCOL.min, max: PROTOCOL.max };
    permit += 1;
    const asking = { protocol, replica: { ...replica, permit }, logs };
    const { body } = await ask('/handshake', { token, body: asking });
    return (body as Partial<HandshakeAnswer>).logs?.[0];
  };
  const wrong = 'f'.repeat(64);
  const found: Violation[] = [];
  const state = await say(position, wrong);
  if (state !== undefined && 'signature' in state && state.signature === 'equal')
    found.push({ invariant: 'I12', what: 'ledger: a wrong state was called right' });
  const history = await say({ ...position, chain: wrong }, wrong);
  if (position.version > 0 && history?.status !== 'history-changed')
    found.push({ invariant: 'I07', what: `ledger: another history was called ${history?.status}` });
  return found;
}
