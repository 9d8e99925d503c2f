import { createHmac, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { as, created, createOutsider, edited, hello, operation } from './outsider.fixture.ts';

/**
 * The rest of `/v1` as an outsider meets it: what is there, state and history, what an operation may ask for, and several
 * logs on one socket. Each test has a workspace of its own; the last one ends the ledger.
 */
const LOG_KEY = randomBytes(32).toString('hex');
const COMMIT_BYTES_MAX = 1_500_000;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-black-box-'));
let served: Served;
const { call, replica, open } = createOutsider(() => served.url, 'root');

const serve = (): Promise<Served> =>
  serveLedger({
    store: { sqlite: folder },
    access: staticTokens({
      root: { account: 'root', grants: { '*': 'administrator' } },
      ana: { account: 'ana', grants: { listed: 'writer', nowhere: 'reader' } },
    }),
    createOnFirstUse: true,
    logKey: LOG_KEY,
    // With the usual limits nothing is larger than a page.
    limits: { commitBytesMax: COMMIT_BYTES_MAX },
    listen: { port: 0 },
    admin: { port: 0 },
    logLevel: 'silent',
  });
beforeAll(async () => {
  served = await serve();
});
afterAll(async () => {
  await served.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A replica that has said hello to a workspace of its own. */
const arrived = async (workspace: string, log = 'main') => {
  const one = replica('root', workspace, log);
  const { body } = await one.handshake();
  return {
    ...one,
    at: body.logs[0],
    get: (path: string) => call('GET', `/workspaces/${workspace}/logs/${log}${path}`),
  };
};
const statuses = ({ body }: { readonly body: any }) =>
  body.results.map(({ status, code }: { status: string; code?: string }) => code ?? status);

describe('what is there', () => {
  test('[LG11 S04] workspaces and logs are made by administrators, once; everybody sees his own', async () => {
    const make = (path: string, body: unknown, token = 'root') => call('POST', path, body, as(token));
    expect(await make('/workspaces', { workspace: 'listed' })).toMatchObject({
      status: 201,
      body: { workspace: 'listed', created: true },
    });
    expect(await make('/workspaces', { workspace: 'listed' })).toMatchObject({ status: 200, body: { created: false } });
    await make('/workspaces', { workspace: 'hidden' });
    expect((await make('/workspaces', { workspace: 'listed' }, 'ana')).status).toBe(403);
    for (const wrong of [{ workspace: 'a/b' }, { workspace: '' }, { workspace: 'x', more: 1 }, {}, 'x'])
      expect([wrong, (await make('/workspaces', wrong)).status]).toEqual([wrong, 400]);

    const mine = await call('GET', '/workspaces', undefined, as('ana'));
    // What she may read and nobody has made is not there either.
    expect(mine.body).toEqual({
      workspaces: [{ workspace: 'listed', role: 'writer', createdAt: expect.any(String) as string }],
    });

    const logs = '/workspaces/listed/logs';
    const made = await make(logs, { log: 'side' });
    expect(made).toMatchObject({ status: 200, body: { log: 'side', head: 0, state: 'open' } });
    expect((await make(logs, { log: 'side' })).body).toEqual(made.body);
    expect((await make(logs, { log: 'other' }, 'ana')).status).toBe(403);
    const { body } = await call('GET', logs, undefined, as('ana'));
    expect(body.logs.map(({ log }: { log: string }) => log)).toEqual(['main', 'side']);
    expect(body.logs[1]).toEqual(made.body);
    expect((await call('GET', '/workspaces/hidden/logs', undefined, as('ana'))).status).toBe(404);
  });
});

describe('state and history', () => {
  test('[BS1 BS3] entities come in pages in the order of their keys, without deleted ones, each page as of its own version', async () => {
    const one = await arrived('entities');
    const ids = ['b', 'a', 'e', 'd', 'c'];
    await one.push(ids.map((id) => operation([created(`title ${id}`, id)])));
    await one.push([operation([{ ...edited('d', {}), type: 'issue.deleted', change: { op: 'delete' } }])]);
    const first = (await one.get('/entities?limit=2')).body;
    expect(first.asOf.version).toBe(6);
    expect(first.entities).toMatchObject([
      { type: 'issue', id: 'a', version: 1, arrival: 2, fields: { title: 'title a' }, createdBy: 'root' },
      { type: 'issue', id: 'b', version: 1, arrival: 1, fields: { title: 'title b' }, updatedBy: 'root' },
    ]);
    // Between two pages somebody writes: the next one says so.
    await one.push([operation([edited('e', { set: { title: 'other' } })])]);
    const next = (await one.get(`/entities?limit=2&cursor=${encodeURIComponent(first.next)}`)).body;
    expect(next).toMatchObject({
      asOf: { version: 7 },
      epoch: first.epoch,
      entities: [{ id: 'c' }, { id: 'e', version: 2, fields: { title: 'other' } }],
    });
    expect(next).not.toHaveProperty('next');
    expect(await one.get('/entities?cursor=made-up')).toMatchObject({ status: 400, body: { code: 'malformed' } });
    expect(await one.get('/entities?limit=two')).toMatchObject({ status: 400, body: { details: { path: 'limit' } } });
    expect((await one.get('/entities/issue/d')).body).toEqual({ asOf: 7, entity: null });
  });

  test('[EV2] the history of one entity is its events and no others, oldest first, in pages', async () => {
    const one = await arrived('history');
    await one.push([operation([created('one', 'x'), created('other', 'y')])]);
    for (const base of [1, 2, 3]) await one.push([operation([edited('x', { set: { title: `t${base}` } }, base)])]);
    const page = (await one.get('/entities/issue/x/history?limit=2')).body;
    const rest = (await one.get('/entities/issue/x/history?limit=2&after=2')).body;
    expect([page.more, rest.more]).toEqual([true, false]);
    const all = [...page.events, ...rest.events];
    expect(all.map(({ version, entityVersion, base }) => [version, entityVersion, base])).toEqual([
      [1, 1, 0],
      [3, 2, 1],
      [4, 3, 2],
      [5, 4, 3],
    ]);
    expect(all.map(({ change }) => (change.fields ?? change.set).title)).toEqual(['one', 't1', 't2', 't3']);
    expect((await one.get('/entities/issue/never/history')).body).toEqual({ events: [], more: false });
  });

  test('[PG2 LG6] an operation larger than a page comes in parts, in pages and on a socket; each can be resumed at', async () => {
    const one = await arrived('parts');
    const { limits } = (await call('GET', '/session')).body;
    expect(limits).toMatchObject({ commitBytesMax: COMMIT_BYTES_MAX, pageBytesMax: 1_048_576 });
    const events = (bytes: number) => Array.from({ length: 512 }, (_, at) => created(`${at} ${'x'.repeat(bytes)}`));
    expect(await one.push([operation(events(2_900))])).toMatchObject({
      body: { results: [{ code: 'too-large', details: { limit: 'commitBytesMax', max: COMMIT_BYTES_MAX } }] },
    });
    expect(statuses(await one.push([operation(events(2_000))]))).toEqual(['accepted']);
    const pages: any[] = [];
    do pages.push((await one.get(`/events?after=${pages.at(-1)?.through.version ?? 0}`)).body);
    while (pages.at(-1).more);
    const shape = ({ part, parts, events: { length } }: any) => [part, parts, length];
    const inParts = [
      [1, 2, 256],
      [2, 2, 256],
    ];
    expect(pages.map(shape)).toEqual(inParts);
    expect(pages.flatMap((page) => page.events).map(({ version }) => version)).toEqual(
      Array.from({ length: 512 }, (_, at) => at + 1),
    );
    const { epoch, through } = pages[0];
    const { version, chain } = through;
    const { socket, until, send } = await open(undefined, 'parts');
    send(hello('root', replica().who));
    send({ type: 'follow', log: 'main', position: { epoch, version, chain } });
    const frame = await until('events');
    expect([shape(frame as never), frame['through']]).toEqual([inParts[1], pages[1].through]);
    expect((await one.get('/events?after=256')).body).toEqual(pages[1]);
    socket.close();
  });

  test('[DG4] every position bears a signature that only the log key makes', async () => {
    const one = await arrived('attest');
    const { body: pushed } = await one.push([operation([created('signed')])]);
    const { body: page } = await one.get('/events?after=0');
    const { body: state } = await one.get('/entities');
    const identity = Buffer.from(one.at.identity, 'hex');
    for (const { version, chain, attest } of [one.at.head, pushed.through, page.through, state.asOf]) {
      const hmac = createHmac('sha256', Buffer.from(LOG_KEY, 'hex'));
      expect(attest).toBe(hmac.update(identity).update(`${version}\n`).update(Buffer.from(chain, 'hex')).digest('hex'));
    }
    expect(page.through.version).toBe(1);
  });
});

describe('what an operation may ask for', () => {
  test('[SC4 EV7] a type defined at run time is used after its definition, and its serial numbers are the ledger’s', async () => {
    const one = await arrived('types');
    const note = (fields = { label: 'x' }) => ({
      ...created(''),
      entityType: 'note',
      type: 'note.created',
      change: { op: 'create', fields },
    });
    const definition = {
      ...created('', 'note'),
      entityType: 'holdfast.entity-type',
      type: 'holdfast.entity-type.created',
      change: {
        op: 'create',
        fields: { schema: { fields: { label: { kind: 'text' }, number: { kind: 'serial' } } } },
      },
    };
    const notes = [operation([note()]), operation([note()])];
    expect(statuses(await one.push([operation([definition]), ...notes]))).toEqual(['accepted', 'accepted', 'accepted']);
    const { body } = await one.get('/events?after=1');
    expect(body.events.map(({ assigned }: any) => assigned)).toEqual([{ number: 1 }, { number: 2 }]);
    // What the ledger gives is a field of the entity like any other.
    const { body: found } = await one.get(`/entities/note/${notes[1]?.events[0]?.entityId}`);
    expect(found.entity.fields).toEqual({ label: 'x', number: 2 });
    // Types come first, on pages of their own.
    const { body: types } = await one.get('/entities');
    expect([types.entities.map(({ id }: any) => id), typeof types.next]).toEqual([['note'], 'string']);
    const nonsense = { ...definition, ...created('', 'bad'), entityType: definition.entityType, type: definition.type };
    nonsense.change = { op: 'create', fields: { schema: { fields: { label: { kind: 'nonsense' } } } as never } };
    expect(statuses(await one.push([operation([nonsense])]))).toEqual(['invalid-event']);
  });

  test('[LG4 SC9] what must be there: an entity, or an operation', async () => {
    const one = await arrived('requires');
    const first = operation([created('first', 'there')]);
    expect(
      statuses(
        await one.push([
          operation([created('early')], { requires: [['issue', 'there']] }),
          operation([created('early')], { needs: [first.actionId] }),
          first,
          operation([created('late')], { requires: [['issue', 'there']] }),
          operation([created('late')], { needs: [first.actionId] }),
        ]),
      ),
    ).toEqual(['missing-reference', 'prior-missing', 'accepted', 'accepted', 'accepted']);
  });

  test('[MG2 LG4] two who set one field merge where both name its rule, and the rule says what holds', async () => {
    const one = await arrived('rules');
    await one.push([operation([created('t', 'x')])]);
    const set = (fields: Record<string, unknown>, rules?: Record<string, string>) =>
      operation([edited('x', { set: fields, ...(rules === undefined ? {} : { rules }) })]);
    const last = { status: 'last' };
    const max = { size: 'max' };
    const pushed = await one.push([
      set({ status: 'open' }, last),
      set({ status: 'closed' }, last),
      set({ size: 9 }, max),
      set({ size: 4 }, max),
      set({ status: 'reopened' }),
      set({ size: 12 }, { size: 'min' }),
    ]);
    expect(statuses(pushed)).toEqual([
      'accepted',
      'accepted',
      'accepted',
      'accepted',
      'version-conflict',
      'version-conflict',
    ]);
    const { body } = await one.get('/entities/issue/x');
    expect(body.entity.fields).toEqual({ title: 't', status: 'closed', size: 9 });
  });

  test('[LG5] an operation for one version of the log stands alone, and falls when the log has moved on', async () => {
    const one = await arrived('preview');
    await one.push([operation([created('t', 'x')])]);
    const preview = (expectedLogVersion: number, base: number) =>
      operation([edited('x', { set: { title: 'restored' } }, base)], { expectedLogVersion });
    expect(statuses(await one.push([preview(1, 1)]))).toEqual(['accepted']);
    expect(statuses(await one.push([preview(1, 2)]))).toEqual(['stale-restore-preview']);
  });
});

describe('one socket', () => {
  test('[RT1 RT5] two logs, each at its own place; what was missed is caught up; after unfollow nothing comes', async () => {
    const [main, side] = [await arrived('two'), await arrived('two', 'side')];
    const start = main.position;
    await main.push([operation([created('missed 1')])]);
    await main.push([operation([created('missed 2')])]);
    const { socket, frames, until, send } = await open(undefined, 'two');
    send(hello('root', main.who));
    send({ type: 'follow', log: 'main', position: start });
    send({ type: 'follow', log: 'side', position: side.position });
    expect([await until('ready'), await until('ready')]).toMatchObject([
      { log: 'main', head: 2 },
      { log: 'side', head: 0 },
    ]);
    const missed = await until('events');
    expect(missed).toMatchObject({ log: 'main', through: { version: 2 } });
    expect(missed['events'].map(({ version }: any) => version)).toEqual([1, 2]);
    await side.push([operation([created('aside')])]);
    expect(await until('events')).toMatchObject({ log: 'side', events: [{ version: 1 }], through: { version: 1 } });

    send({ type: 'unfollow', log: 'main' });
    send({ type: 'ping', nonce: 'after' });
    await until('pong');
    await main.push([operation([created('unheard')])]);
    await side.push([operation([created('heard')])]);
    expect(await until('events')).toMatchObject({ log: 'side', through: { version: 2 } });
    expect(frames.filter(({ type }) => type === 'events')).toEqual([]);
    socket.close();
  });

  test('[RT5 DG5] who is too far behind, or nowhere in the log, is told to pull', async () => {
    const one = await arrived('behind');
    const start = one.position;
    await one.push([operation(Array.from({ length: 512 }, (_, at) => created(`${at}`)))]);
    await one.push([operation([created('one more')])]);
    const { socket, until, send } = await open(undefined, 'behind');
    send(hello('root', one.who));
    send({ type: 'follow', log: 'main', position: start });
    expect(await until('resync-required')).toEqual({
      type: 'resync-required',
      log: 'main',
      head: 513,
      reason: 'too-far-behind',
    });
    send({ type: 'follow', log: 'main', position: { ...start, version: 513, chain: 'f'.repeat(64) } });
    expect(await until('resync-required')).toMatchObject({ reason: 'history-changed' });
    send({ type: 'follow', log: 'no-such-log', position: start });
    expect(await until('forbidden')).toEqual({ type: 'forbidden', log: 'no-such-log' });
    socket.close();
  });

  test('[RT7 F80] what a replica says it holds outlives the ledger, which says goodbye before it goes', async () => {
    const one = await arrived('last');
    await one.push([operation([created('a')])]);
    await one.push([operation([created('b')])]);
    const { until, send, closed } = await open(undefined, 'last');
    send(hello('root', one.who));
    send({ type: 'follow', log: 'main', position: one.position });
    await until('ready');
    send({ type: 'ack', log: 'main', version: 2 });
    send({ type: 'ping', nonce: 'heard' });
    await until('pong');
    const closing = served.close();
    const { retryMs } = await until('going-away');
    expect(retryMs).toBeGreaterThanOrEqual(500);
    expect(await closed).toBe(1001);
    await closing;
    served = await serve();
    const { body } = await call('GET', '/workspaces/last/replicas');
    expect(body.replicas).toMatchObject([
      { replica: one.who.id, account: 'root', generation: 1, proven: { main: 2 }, app: null, health: null },
    ]);
    expect((await one.get('/events?after=0')).body).toMatchObject({
      head: 2,
      events: [{ version: 1 }, { version: 2 }],
    });
  });
});
