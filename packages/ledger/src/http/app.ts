import { HEADERS, isAddressName, type Json, type Logger, PROTOCOL, type Role } from '@holdfast/core';
import { type Context, Hono } from 'hono';
import { routePath } from 'hono/route';
import type { Access, Caller } from '../access/access.ts';
import { mayAdminister, roleIn } from '../access/access.ts';
import { type Answered, type MaybePromise, type Refused, refusedBy } from '../engine/answer.ts';
import type { Actor, Engine, LogRef } from '../engine/engine.ts';
import { loggedError } from '../engine/logged-error.ts';
import { nameProblem, refusedName } from '../engine/names.ts';
import { readJsonBody } from './body.ts';
import { isForeignPage, type Origins } from './origins.ts';

/**
 * The ledger's HTTP door (5.1): who asks, from where, in what form. What is asked is the engine's to judge. Access is
 * checked before a body is read and before anything is looked up; who may not know a workspace is answered as if it were
 * not there (LG11, S04).
 */
export interface AppParts {
  readonly engine: Engine;
  readonly access: Access;
  readonly origins: Origins;
  readonly logger: Logger;
  /** Names an answer in the ledger's log. */
  readonly newRequestId: () => string;
  readonly observe?: (facts: RequestFacts) => void;
  readonly now: () => number;
}

export interface RequestFacts {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly ms: number;
}

type Handler = (c: Context) => Promise<Response>;

export function createApp(parts: AppParts): { readonly fetch: (request: Request) => Response | Promise<Response> } {
  const { engine } = parts;
  const door = createDoor(parts);
  const app = new Hono();

  app.get('/v1/session', door.session());
  app.get('/v1/workspaces', door.workspaces());
  app.post('/v1/workspaces', door.createWorkspace());
  app.get(
    '/v1/workspaces/:w/logs',
    door.read((actor, { workspace }) => engine.logs(actor, workspace)),
  );
  app.post('/v1/workspaces/:w/logs', door.createLog());
  app.get(
    '/v1/workspaces/:w/replicas',
    door.read((actor, { workspace }) => engine.replicas(actor, workspace)),
  );
  app.post(
    '/v1/workspaces/:w/handshake',
    door.write((actor, { workspace }, json) => engine.handshake(actor, workspace, json)),
  );
  app.post(
    '/v1/workspaces/:w/logs/:log/push',
    door.write((actor, ref, json) => engine.push(actor, ref, json)),
  );
  app.get(
    '/v1/workspaces/:w/logs/:log/events',
    door.read((actor, ref, q) => engine.events(actor, ref, { after: q.number('after') ?? 0, ...q.limit() })),
  );
  app.get(
    '/v1/workspaces/:w/logs/:log/entities',
    door.read((actor, ref, q) => engine.entities(actor, ref, { ...q.text('cursor'), ...q.limit() })),
  );
  app.get(
    '/v1/workspaces/:w/logs/:log/entities/:type/:id',
    door.read((actor, ref, q) => engine.entity(actor, ref, q.entity())),
  );
  app.get(
    '/v1/workspaces/:w/logs/:log/entities/:type/:id/history',
    door.read((actor, ref, q) =>
      engine.history(actor, ref, { ...q.entity(), after: q.number('after') ?? 0, ...q.limit() }),
    ),
  );
  app.notFound((c) => door.refuse(c, refusedBy('not-found')));
  app.onError((cause, c) => {
    parts.logger('error', 'A request failed unexpectedly.', { route: routePath(c), error: loggedError(cause) });
    return door.refuse(c, refusedBy('internal'));
  });
  return { fetch: (request) => app.fetch(request) };
}

/** What a handler may read of the address. A number that is no number is a refusal of its own. */
class Query {
  readonly #c: Context;
  constructor(c: Context) {
    this.#c = c;
  }
  number(name: string): number | undefined {
    const text = this.#c.req.query(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text)) throw new BadQuery(name);
    return Number(text);
  }
  limit(): { readonly limit?: number } {
    const limit = this.number('limit');
    return limit === undefined ? {} : { limit };
  }
  text<N extends string>(name: N): { readonly [K in N]?: string } {
    const text = this.#c.req.query(name);
    return (text === undefined ? {} : { [name]: text }) as { readonly [K in N]?: string };
  }
  entity(): { readonly type: string; readonly id: string } {
    return { type: this.#c.req.param('type') ?? '', id: this.#c.req.param('id') ?? '' };
  }
}

class BadQuery extends Error {
  override readonly name = 'BadQuery';
  readonly parameter: string;
  constructor(parameter: string) {
    super(`The parameter "${parameter}" is not a whole number.`);
    this.parameter = parameter;
  }
}

function createDoor({ engine, access, origins, logger, newRequestId, observe, now }: AppParts) {
  /** A plain object: a server writes it as it is, where a `Headers` would be filled and read again. */
  const headersFor = (c: Context): Record<string, string> => {
    const origin = c.req.header('origin') ?? null;
    // Every answer echoes the permit, a refusal at the door too (LG10). A body that names one wins.
    const permit = c.req.header(HEADERS.permit) ?? '';
    return {
      ...(/^\d{1,15}$/.test(permit) ? { [HEADERS.permit]: permit } : {}),
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
      [HEADERS.protocol]: String(PROTOCOL.max),
      ...origins.corsHeaders(origin),
    };
  };

  const send = (c: Context, status: number, body: string, more: Readonly<Record<string, string>> = {}): Response =>
    new Response(body, { status, headers: { ...headersFor(c), ...more } });

  const refuse = (c: Context, refused: Refused, more: Readonly<Record<string, string>> = {}): Response => {
    const requestId = newRequestId();
    const { status, refusal, retryAfterMs } = refused;
    if (status >= 500) logger('error', refusal.message, { requestId, code: refusal.code, route: routePath(c) });
    else logger('debug', refusal.message, { requestId, code: refusal.code, route: routePath(c) });
    return send(c, status, JSON.stringify({ ...refusal, requestId }), {
      ...more,
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
      ...(retryAfterMs === undefined ? {} : { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
    });
  };

  const answer = (c: Context, answered: Answered<unknown>): Response => {
    const vouch = {
      ...(answered.logIdentity === null ? {} : { [HEADERS.logIdentity]: answered.logIdentity }),
      ...(answered.permit === null ? {} : { [HEADERS.permit]: String(answered.permit) }),
    };
    return answered.ok ? send(c, 200, answered.body, vouch) : refuse(c, answered.refused, vouch);
  };

  /** Every request passes here once: origin, credential, time. */
  const guarded =
    (run: (c: Context, caller: Caller) => Promise<Response>): Handler =>
    async (c) => {
      const startedMs = now();
      const response = await admit(c, run);
      observe?.({
        route: routePath(c),
        method: c.req.method,
        status: response.status,
        ms: now() - startedMs,
      });
      return response;
    };

  const admit = async (c: Context, run: (c: Context, caller: Caller) => Promise<Response>): Promise<Response> => {
    if (isForeignPage(c.req.raw.headers, origins)) return refuse(c, refusedBy('origin-not-allowed'));
    let caller: Caller | null;
    try {
      caller = await access.verify({
        token: bearerOf(c.req.header('authorization')),
        cookie: c.req.header('cookie') ?? null,
      });
    } catch (cause) {
      logger('error', 'The access verifier cannot work.', {
        access: access.name,
        error: loggedError(cause),
      });
      return refuse(c, refusedBy('internal', { status: 503, retryAfterMs: 5_000 }));
    }
    if (caller === null || hasEnded(caller)) return refuse(c, refusedBy('unauthenticated'));
    try {
      return await run(c, caller);
    } catch (cause) {
      if (!(cause instanceof BadQuery)) throw cause;
      return refuse(c, refusedBy('malformed', { message: cause.message, details: { path: cause.parameter } }));
    }
  };

  const hasEnded = (caller: Caller): boolean => caller.expiresAtMs !== undefined && caller.expiresAtMs <= now();

  const actorIn = (caller: Caller, workspace: string): Actor | null => {
    const role = roleIn(caller, workspace);
    if (role === null) return null;
    return {
      account: caller.account,
      role,
      ...(caller.expiresAtMs === undefined ? {} : { expiresAtMs: caller.expiresAtMs }),
    };
  };

  type Run<X> = (actor: Actor, ref: LogRef, x: X) => MaybePromise<Answered<unknown>>;

  const read = (run: Run<Query>): Handler =>
    guarded(async (c, caller) => {
      const ref = refOf(c);
      const actor = actorIn(caller, ref.workspace);
      if (actor === null) return refuse(c, refusedBy('not-found'));
      const problem = nameProblem(ref);
      if (problem !== null) return refuse(c, problem);
      return answer(c, await run(actor, ref, new Query(c)));
    });

  const write = (run: Run<Json>): Handler =>
    guarded(async (c, caller) => {
      const ref = refOf(c);
      const actor = actorIn(caller, ref.workspace);
      if (actor === null) return refuse(c, refusedBy('not-found'));
      const problem = nameProblem(ref);
      if (problem !== null) return refuse(c, problem);
      const body = await readJsonBody(c.req.raw);
      if (!body.ok) return refuse(c, body.refused);
      return answer(c, await run(actor, ref, body.json));
    });

  /** `{ [name]: id }` and nothing else. */
  const namedBody = async (c: Context, name: 'workspace' | 'log'): Promise<string | Response> => {
    const body = await readJsonBody(c.req.raw, 4096);
    if (!body.ok) return refuse(c, body.refused);
    const { json } = body;
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) {
      const value = (json as Record<string, Json>)[name];
      if (isAddressName(value) && Object.keys(json).length === 1) return value;
    }
    return refuse(c, refusedName(name));
  };

  return {
    refuse,
    read,
    write,
    session: (): Handler =>
      guarded((c, caller) => {
        const { account, grants, expiresAtMs } = caller;
        const expiry = expiresAtMs === undefined ? {} : { expiresAt: new Date(expiresAtMs).toISOString() };
        return Promise.resolve(send(c, 200, JSON.stringify({ account, grants, ...expiry, ...engine.describe() })));
      }),
    workspaces: (): Handler =>
      guarded(async (c, caller) => {
        const all = await engine.workspaces();
        const mine = all.flatMap((facts) => {
          const role: Role | null = roleIn(caller, facts.workspace);
          return role === null ? [] : [{ ...facts, role }];
        });
        return send(c, 200, JSON.stringify({ workspaces: mine }));
      }),
    createWorkspace: (): Handler =>
      guarded(async (c, caller) => {
        const workspace = await namedBody(c, 'workspace');
        if (typeof workspace !== 'string') return workspace;
        const role = roleIn(caller, workspace);
        if (role === null || !mayAdminister(role)) return refuse(c, refusedBy('not-allowed'));
        const created = await engine.createWorkspace(workspace);
        return send(c, created ? 201 : 200, JSON.stringify({ workspace, created }));
      }),
    createLog: (): Handler =>
      guarded(async (c, caller) => {
        const { workspace } = refOf(c);
        const actor = actorIn(caller, workspace);
        if (actor === null) return refuse(c, refusedBy('not-found'));
        if (!isAddressName(workspace)) return refuse(c, refusedName('workspace'));
        const log = await namedBody(c, 'log');
        if (typeof log !== 'string') return log;
        return answer(c, await engine.createLog(actor, { workspace, log }));
      }),
  };
}

const refOf = (c: Context): LogRef => ({ workspace: c.req.param('w') ?? '', log: c.req.param('log') ?? 'main' });

/** RFC 6750. Anything else is no credential. */
export function bearerOf(header: string | undefined): string | null {
  const match = /^Bearer ([!-~]+)$/i.exec(header ?? '');
  return match === null ? null : (match[1] as string);
}
