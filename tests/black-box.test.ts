import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Answer, as, created, createOutsider, edited, hello, jcs, operation, sha256 } from './outsider.fixture.ts';

/**
 * The ledger as an outsider meets it: plain `fetch` and `ws` against `/v1`, written from docs/PROTOCOL.md alone, with no
 * code of Holdfast on the asking side.
 */
let served: Served;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-black-box-'));
  served = await serveLedger({
    store: { sqlite: folder },
    access: staticTokens({
      writer: { account: 'ana', grants: { acme: 'writer' } },
      other: { account: 'ben', grants: { acme: 'writer' } },
      reader: { account: 'eve', grants: { acme: 'reader' } },
      stranger: { account: 'mal', grants: { globex: 'writer' } },
    }),
    createOnFirstUse: true,
    origins: ['https://app.example.com'],
    listen: { port: 0 },
    admin: { port: 0 },
    logLevel: 'silent',
  });
});
afterAll(async () => {
  await served.close();
  rmSync(folder, { recursive: true, force: true });
});

const { call, replica, open } = createOutsider(() => served.url, 'writer');

describe('an outsider with fetch', () => {
  test('[LG10 LG15] every answer is vouched for, and nobody may cache it', async () => {
    const { status, headers, body } = await call('GET', '/session');
    expect(status).toBe(200);
    expect(headers.get('holdfast-protocol')).toBe('1');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toMatchObject({ account: 'ana', grants: { acme: 'writer' }, protocol: { min: 1, max: 1 } });
    expect(body.limits.commitEventsMax).toBe(512);
  });

  test('[LG10] a push echoes its permit and names the log', async () => {
    const one = replica();
    const shaken = await one.handshake();
    const pushed = await one.push([operation([created('A')])]);
    expect(pushed.headers.get('holdfast-permit')).toBe('2');
    expect(pushed.headers.get('holdfast-log')).toBe(shaken.body.logs[0].identity);
    expect(pushed.body.results[0]).toMatchObject({ status: 'accepted', actor: 'ana', entityVersions: [1] });
  });

  test('[DG1] whoever reads the log can compute its chain', async () => {
    const one = replica();
    await one.handshake();
    await one.push([operation([created('chain')])]);
    const { body: shaken } = await replica().handshake();
    let chain = sha256(Buffer.from(shaken.logs[0].identity, 'hex'));
    let after = 0;
    for (;;) {
      const { body: page } = await call('GET', `/workspaces/acme/logs/main/events?after=${after}`);
      for (const event of page.events) {
        const {
          version,
          entityVersion,
          actor,
          recordedAt,
          requestId,
          actionId,
          replicaId,
          index,
          count,
          assigned,
          origin,
          ...draft
        } = event;
        const envelope = {
          version,
          entityVersion,
          actor,
          recordedAt,
          requestId,
          actionId,
          replicaId,
          index,
          count,
          ...(assigned && { assigned }),
          ...(origin && { origin }),
        };
        const { salt, ...unsalted } = draft;
        const leaf = sha256(Buffer.from(salt, 'hex'), jcs(unsalted));
        chain = sha256(Buffer.from(chain, 'hex'), Buffer.from(leaf, 'hex'), jcs(envelope));
      }
      after = page.through.version;
      expect(page.through.chain).toBe(chain);
      if (!page.more) break;
    }
    expect(after).toBeGreaterThan(0);
  });

  test('[LG2 I04] the same request again gives the first result, and changes nothing', async () => {
    const one = replica();
    await one.handshake();
    const asked = operation([created('once')]);
    const first = await one.push([asked]);
    const second = await one.push([asked]);
    expect(second.body.results).toEqual(first.body.results);
    expect(second.body.head).toBe(first.body.head);
  });

  test('[LG2 I05] the same request with other bytes is refused', async () => {
    const one = replica();
    await one.handshake();
    const asked = operation([created('mine')]);
    await one.push([asked]);
    const { body } = await one.push([
      { ...asked, events: [{ ...(asked.events[0] as object), change: { op: 'create', fields: { title: 'other' } } }] },
    ]);
    expect(body.results[0]).toMatchObject({ status: 'refused', code: 'idempotency-mismatch' });
  });

  test('[EV4 F180] a client that sends any of the envelope is refused, the others of its request are not', async () => {
    const one = replica();
    await one.handshake();
    const forged = operation([{ ...created('forged'), actor: 'root', version: 1 }]);
    const honest = operation([created('honest')]);
    const { body } = await one.push([forged, honest]);
    expect(body.results.map((result: { status: string; code?: string }) => [result.status, result.code])).toEqual([
      ['refused', 'invalid-event'],
      ['accepted', undefined],
    ]);
    expect(body.results[0].details.path).toMatch(/events\[0\]\.(actor|version)/);
  });

  test('[LG4] two who edit other fields both hold; one who sets the same field is told', async () => {
    const [ana, ben] = [replica(), replica('other')];
    await ana.handshake();
    const made = created('base');
    await ana.push([operation([made])]);
    await ben.handshake();
    const edit = (set: Record<string, unknown>) => edited(made.entityId, { set });
    const first = await ana.push([operation([edit({ title: 'Ana' })])]);
    const other = await ben.push([operation([edit({ priority: 2 })])]);
    const clash = await ben.push([operation([edit({ title: 'Ben' })])]);
    expect(first.body.results[0].status).toBe('accepted');
    expect(other.body.results[0].status).toBe('accepted');
    expect(clash.body.results[0]).toMatchObject({ status: 'refused', code: 'version-conflict' });
    const { body } = await call('GET', `/workspaces/acme/logs/main/entities/issue/${made.entityId}`);
    expect(body.entity.fields).toEqual({ priority: 2, title: 'Ana' });
  });

  test('[LG8] a permit number that does not grow, and a second instance, take no effect', async () => {
    const one = replica();
    await one.handshake();
    await one.push([operation([created('fence')])]);
    const stale = await one.push([operation([created('late')])], 1);
    expect([stale.status, stale.body.code]).toEqual([409, 'stale-permit']);
    const copy = await call('POST', '/workspaces/acme/handshake', {
      protocol: { min: 1, max: 1 },
      replica: { ...one.who, instance: randomBytes(16).toString('hex'), permit: 9 },
      logs: [{ log: 'main', positions: [] }],
    });
    expect([copy.status, copy.body.code]).toEqual([409, 'replica-cloned']);
  });

  test('[DG5] a position that is not in the log is told, and nothing is judged', async () => {
    const one = replica();
    await one.handshake();
    const lost = await call('POST', '/workspaces/acme/logs/main/push', {
      position: { ...one.position, chain: 'f'.repeat(64) },
      replica: one.next(),
      operations: [operation([created('nowhere')])],
    });
    expect([lost.status, lost.body.code]).toEqual([409, 'history-changed']);
  });

  test('[F182 LG11 S04] who may not know cannot tell absent from forbidden', async () => {
    const forbidden = await call('GET', '/workspaces/acme/logs/main/events', undefined, as('stranger'));
    const absent = await call('GET', '/workspaces/nowhere/logs/main/events', undefined, as('stranger'));
    const strip = ({ status, body }: Answer) => ({ status, body: { ...body, requestId: '' } });
    expect(strip(forbidden)).toEqual(strip(absent));
    expect(forbidden.status).toBe(404);
    expect((await call('GET', '/session', undefined, as('nobody'))).status).toBe(401);
  });

  test('[LG11] a reader reads, and writes nothing', async () => {
    expect((await call('GET', '/workspaces/acme/logs/main/events?after=0', undefined, as('reader'))).status).toBe(200);
    const eve = replica('reader');
    await eve.handshake();
    const { status, body } = await eve.push([operation([created('no')])]);
    expect([status, body.code]).toEqual([403, 'not-allowed']);
  });

  test('[JS3 S06] bodies are read strictly', async () => {
    const post = (body: string, headers: Record<string, string> = {}) =>
      call('POST', '/workspaces/acme/handshake', body, headers);
    const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
    for (const body of [
      '{"a":1,"a":2}',
      '{"a":"\\ud83d"}',
      '{"a":1e400}',
      '{"__proto__":1}',
      deep,
      'not json',
      '\ufeff{}',
    ])
      expect([body, (await post(body)).status]).toEqual([body, 400]);
    expect((await post('{}', { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await post('{}', { 'Content-Encoding': 'gzip' })).status).toBe(415);
    expect((await post(`"${'x'.repeat(5 * 1024 * 1024)}"`)).status).toBe(413);
  });

  test('[JS3 LG6 F120 F123 F125 F126 F188] a push is read as strictly: what is no JSON of the profile takes nothing, and is not remembered', async () => {
    const one = replica();
    await one.handshake();
    const whole = operation([created('TITLE')]);
    const bytesOf = (title: string) => JSON.stringify(one.request([whole])).replace('"TITLE"', () => title);
    const push = (body: string) => call('POST', '/workspaces/acme/logs/main/push', body);
    const hostile: readonly (readonly [what: string, body: string, code: string])[] = [
      ['a key twice', bytesOf('"a","title":"b"'), 'malformed'],
      ['a lone surrogate', bytesOf('"\\ud83d"'), 'invalid-event'],
      ['no finite number', bytesOf('1e400'), 'invalid-event'],
      ['__proto__', bytesOf('{"__proto__":1}'), 'invalid-event'],
      ['depth 200,000', bytesOf('['.repeat(200_000) + ']'.repeat(200_000)), 'malformed'],
      ['an event of 10 MB', bytesOf(`"${'x'.repeat(10 * 1024 * 1024)}"`), 'too-large'],
      ['a key of 10 MB', bytesOf(`{"${'k'.repeat(10 * 1024 * 1024)}":1}`), 'too-large'],
      [
        'an event of 1 MB in small parts',
        bytesOf(
          JSON.stringify(
            Array(100_000)
              .fill(0)
              .map((_, at) => ({ at })),
          ),
        ),
        'too-large',
      ],
    ];
    const codeOf = ({ body }: Answer): string => body.code ?? body.results[0].code;
    const before = (await call('GET', '/workspaces/acme/logs/main/events?after=0&limit=1')).body.head;
    for (const [what, body, code] of hostile) expect([what, codeOf(await push(body))]).toEqual([what, code]);
    expect((await call('GET', '/workspaces/acme/logs/main/events?after=0&limit=1')).body.head).toEqual(before);
    // The same request id with bytes that are good: nothing of the others is known.
    expect((await push(bytesOf('"good"'))).body.results[0]).toMatchObject({ status: 'accepted' });
  });

  test('[S12 S10] only configured pages are answered', async () => {
    const page = (origin: string) => call('GET', '/session', undefined, { Origin: origin });
    expect((await page('https://app.example.com')).headers.get('access-control-allow-origin')).toBe(
      'https://app.example.com',
    );
    const foreign = await page('https://app.example.com.evil.example');
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([403, null]);
    expect((await call('GET', '/session', undefined, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403);
  });

  test('[PG1] pages hold whole operations: 1, 511, 512 events and what does not fit beside them', async () => {
    const one = replica();
    await one.handshake();
    const start = one.position.version;
    for (const size of [1, 511, 512]) {
      const pushed = await one.push([operation(Array.from({ length: size }, (_, at) => created(`${size}/${at}`)))]);
      expect(pushed.body.results[0].status).toBe('accepted');
    }
    const sizes: number[] = [];
    for (let after = start; ; ) {
      const { body } = await call('GET', `/workspaces/acme/logs/main/events?after=${after}&limit=512`);
      sizes.push(body.events.length);
      expect(body.events[0].index).toBe(0);
      expect(body.events.at(-1).index).toBe(body.events.at(-1).count - 1);
      after = body.through.version;
      if (!body.more) break;
    }
    expect(sizes).toEqual([512, 512]);
    const tooMany = await one.push([operation(Array.from({ length: 513 }, (_, at) => created(`${at}`)))]);
    expect(tooMany.body.results?.[0] ?? tooMany.body).toMatchObject({
      code: expect.stringMatching(/too-large|invalid-event/),
    });
  });
});

describe('an outsider with a socket', () => {
  test('[RT1] hello, follow, ready, and then every append as it is accepted', async () => {
    const one = replica();
    await one.handshake();
    const { socket, until, send } = await open();
    send(hello('writer', one.who));
    expect(await until('welcome')).toMatchObject({ account: 'ana', protocol: 1 });
    send({ type: 'follow', log: 'main', position: one.position });
    expect(await until('ready')).toMatchObject({ log: 'main', head: one.position.version });
    const other = replica('other');
    await other.handshake();
    await other.push([operation([created('live')])]);
    const frame = await until('events');
    expect(frame['events'][0].change.fields.title).toBe('live');
    expect(frame['through'].version).toBe(one.position.version + 1);
    send({ type: 'ping', nonce: 'n1' });
    expect(await until('pong')).toMatchObject({ nonce: 'n1' });
    socket.close();
  });

  test('[S33] nothing is said before a good token, and a bad one ends the socket', async () => {
    const { until, send, closed } = await open();
    send(hello('nobody', replica().who));
    expect(await until('refused')).toMatchObject({ code: 'unauthenticated' });
    expect(await closed).toBeGreaterThanOrEqual(1000);
  });

  test('[F183 S35 S37] floods end the socket: too many pings, a message in pieces that is too long; nothing is compressed', async () => {
    const pinging = await open();
    expect(pinging.socket.extensions).toBe('');
    for (let at = 0; at < 250; at += 1) pinging.socket.ping();
    expect(await pinging.closed).toBe(1008);
    const endless = await open();
    for (let at = 0; at < 5; at += 1) endless.socket.send('x'.repeat(16_000), { fin: false });
    expect(await endless.closed).toBe(1009);
  });

  test('[S31 F184] a page of another origin does not get a socket, however like the right one, and the right one needs a token', async () => {
    for (const origin of [
      'https://evil.example',
      'https://app.example.com.evil.example',
      'https://evil.example/https://app.example.com',
      'http://app.example.com',
      'https://app.example.com:8443',
      'https://sub.app.example.com',
      'null',
    ])
      await expect(open(origin), origin).rejects.toThrow(/403/);
    const right = await open('https://app.example.com');
    right.send(hello('nobody', replica().who));
    expect(await right.until('refused')).toMatchObject({ code: 'unauthenticated' });
    await right.closed;
  });

  test('[F186] a token in an address opens nothing: neither a request nor a socket', async () => {
    for (const name of ['token', 'access_token', 'authorization']) {
      const { status } = await call('GET', `/session?${name}=writer`, undefined, { Authorization: '' });
      expect([name, status]).toEqual([name, 401]);
    }
    const socket = new WebSocket(`${served.url.replace('http', 'ws')}/v1/workspaces/acme/live?token=writer`);
    const came = await new Promise<string>((resolve) => {
      socket.once('open', () => resolve('open'));
      socket.once('error', ({ message }) => resolve(message));
    });
    expect(came).toContain('404');
  });
});
