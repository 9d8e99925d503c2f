import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { WebSocket } from 'ws';

/**
 * Somebody who knows docs/PROTOCOL.md and nothing else: plain `fetch` and `ws` against `/v1`, with no code of Holdfast on
 * the asking side.
 */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

export interface Position {
  readonly epoch: string;
  readonly version: number;
  readonly chain: string;
}

export const uuidV7 = (): string => {
  const hex = randomUUID().replaceAll('-', '');
  const ms = Date.now().toString(16).padStart(12, '0');
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
};

export const sha256 = (...parts: (string | Buffer)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

/** RFC 8785 for the values used here. */
export const jcs = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(jcs).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${jcs(member)}`).join(',')}}`;
};

export const as = (token: string) => ({ Authorization: `Bearer ${token}` });

/** One event that makes an issue. */
export const created = (title: string, id = uuidV7()) => ({
  id: uuidV7(),
  type: 'issue.created',
  entityType: 'issue',
  entityId: id,
  change: { op: 'create', fields: { title } } as Record<string, unknown>,
  base: 0,
  at: new Date().toISOString(),
  salt: randomBytes(16).toString('hex'),
});

/** One event that changes an issue: `edited(id, { set: { title } })`. */
export const edited = (entityId: string, update: Record<string, unknown>, base = 1) => ({
  ...created('', entityId),
  type: 'issue.updated',
  change: { op: 'update', ...update } as Record<string, unknown>,
  base,
});

export const operation = <E>(events: readonly E[], more: Record<string, unknown> = {}) => ({
  requestId: uuidV7(),
  actionId: uuidV7(),
  events,
  merge: 'fields',
  ...more,
});

export type Outsider = ReturnType<typeof createOutsider>;

/** `urlOf` is asked each time, since a ledger may not be there yet when a test file is read. */
export function createOutsider(urlOf: () => string, defaultToken: string, defaultWorkspace = 'acme') {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const response = await fetch(`${urlOf()}/v1${path}`, {
      method,
      headers: {
        ...as(defaultToken),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
  };

  /** One replica of an outsider: handshakes, then pushes with growing permit numbers. */
  const replica = (token = defaultToken, workspace = defaultWorkspace, log = 'main') => {
    const who = { id: randomBytes(16).toString('hex'), generation: 1, instance: randomBytes(16).toString('hex') };
    let permit = 0;
    const next = () => {
      permit += 1;
      return { ...who, permit };
    };
    let position: Position = { epoch: '', version: 0, chain: '' };
    return {
      who,
      next,
      get position() {
        return position;
      },
      async handshake() {
        const answer = await call(
          'POST',
          `/workspaces/${workspace}/handshake`,
          { protocol: { min: 1, max: 1 }, replica: next(), logs: [{ log, positions: [] }] },
          as(token),
        );
        const [found] = answer.body.logs ?? [];
        if (found?.head !== undefined)
          position = { epoch: found.epoch, version: found.head.version, chain: found.head.chain };
        return answer;
      },
      /** The body of a push, for who sends it some other way. */
      request: (operations: readonly unknown[], permitNumber?: number) => ({
        position,
        replica: permitNumber === undefined ? next() : { ...who, permit: permitNumber },
        operations,
      }),
      push(operations: readonly unknown[], permitNumber?: number) {
        return call(
          'POST',
          `/workspaces/${workspace}/logs/${log}/push`,
          this.request(operations, permitNumber),
          as(token),
        );
      },
    };
  };

  /** A socket, open. Frames wait in order of arrival until somebody asks for their type. */
  const open = async (origin?: string, workspace = defaultWorkspace) => {
    const socket = new WebSocket(
      `${urlOf().replace('http', 'ws')}/v1/workspaces/${workspace}/live`,
      origin === undefined ? {} : { origin },
    );
    const frames: Record<string, any>[] = [];
    const waiting: (() => void)[] = [];
    socket.on('message', (data) => {
      frames.push(JSON.parse(String(data)));
      for (const wake of waiting.splice(0)) wake();
    });
    const closed = new Promise<number>((resolve) => socket.once('close', (code) => resolve(code)));
    const until = async (type: string): Promise<Record<string, any>> => {
      for (;;) {
        const at = frames.findIndex((frame) => frame['type'] === type);
        if (at !== -1) return frames.splice(at, 1)[0] as Record<string, any>;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    };
    await new Promise<void>((resolve, reject) => {
      socket.once('open', () => resolve());
      socket.once('error', reject);
    });
    return { socket, frames, until, closed, send: (frame: unknown) => socket.send(JSON.stringify(frame)) };
  };

  return { call, replica, open };
}

/** The first frame of every socket. */
export const hello = (
  token: string,
  who: { readonly id: string; readonly generation: number; readonly instance: string },
) => ({
  type: 'hello',
  token,
  protocol: { min: 1, max: 1 },
  replica: who,
});
