import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A proxy on loopback between devices and a ledger, on plain sockets. It cuts the stream of a connection into requests,
 * asks a rule what becomes of each, and knows the bytes of whatever went through it. WebSocket goes through untouched.
 */
export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** The whole request as it came. */
  readonly bytes: Buffer;
}

/** What the client gets, after what the ledger got. Null: the connection is reset, without a byte of an answer. */
export type Rule = (
  request: ProxiedRequest,
  /** Delivers the request and gives the whole answer; once, twice, or never. */
  ask: () => Promise<Buffer>,
) => Promise<Buffer | null> | Buffer | null;

export interface TcpProxy extends AsyncDisposable {
  readonly url: string;
  rule: Rule;
  /** Requests in the order in which they came. */
  readonly seen: readonly ProxiedRequest[];
  /** Delivers bytes that were seen before once more, long after. */
  again(request: ProxiedRequest): Promise<Buffer>;
}

export const PASS: Rule = (_request, ask) => ask();

export const page = (status: string, body: string, type = 'text/html; charset=utf-8'): Buffer =>
  Buffer.from(
    `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );

export const isPush = ({ path }: ProxiedRequest): boolean => path.endsWith('/push');
export const isPageRequest = ({ path }: ProxiedRequest): boolean => /\/events\?/.test(path);

const REQUEST_BYTES_MAX = 16 * 1024 * 1024;

export async function startProxy(ledger: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(ledger);
  const sockets = new Set<Socket>();
  const seen: ProxiedRequest[] = [];
  const kept = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const upstream = () => kept(connect(Number(port), hostname));
  const ask = (bytes: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const socket = upstream();
      socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
      socket.once('end', () => resolve(Buffer.concat(chunks)));
      socket.once('error', reject);
      socket.write(closing(bytes));
    });

  const server: Server = createServer((client) => {
    kept(client);
    let buffered = Buffer.alloc(0);
    const take = (chunk: string | Buffer) => {
      buffered = Buffer.concat([buffered, Buffer.from(chunk)]);
      if (buffered.byteLength > REQUEST_BYTES_MAX) return client.destroy();
      if (isUpgrade(buffered)) {
        client.off('data', take);
        const up = upstream();
        up.once('close', () => client.destroy());
        client.once('close', () => up.destroy());
        up.write(buffered);
        return client.pipe(up).pipe(client);
      }
      const request = readRequest(buffered);
      if (request === null) return undefined;
      client.off('data', take);
      seen.push(request);
      return void Promise.resolve(proxy.rule(request, () => ask(request.bytes)))
        .catch(() => null)
        // One request a connection: whatever it was answered with, it ends here.
        .then((answer) => (answer === null ? client.resetAndDestroy() : client.end(answer)));
    };
    client.on('data', take);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as { readonly port: number };
  const proxy: TcpProxy = {
    url: `http://127.0.0.1:${address.port}`,
    rule: PASS,
    seen,
    again: (request) => ask(request.bytes),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return proxy;
}

const HEAD_END = '\r\n\r\n';

const isUpgrade = (bytes: Buffer): boolean => /\r\nupgrade: websocket\r\n/i.test(headOf(bytes) ?? '');

function headOf(bytes: Buffer): string | null {
  const end = bytes.indexOf(HEAD_END);
  return end === -1 ? null : bytes.subarray(0, end + HEAD_END.length).toString('latin1');
}

/** Null: more is to come. */
function readRequest(bytes: Buffer): ProxiedRequest | null {
  const head = headOf(bytes);
  if (head === null) return null;
  const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1] ?? 0);
  if (bytes.byteLength < head.length + length) return null;
  const [method = '', path = ''] = head.split(' ');
  return { method, path, body: bytes.subarray(head.length, head.length + length).toString('utf8'), bytes };
}

/** The ledger ends the connection after its answer, so that the answer's end is known without reading it. */
function closing(bytes: Buffer): Buffer {
  const head = headOf(bytes) as string;
  const said = head.replace(/\r\nconnection: [^\r]*/i, '').replace(HEAD_END, `\r\nConnection: close${HEAD_END}`);
  return Buffer.concat([Buffer.from(said, 'latin1'), bytes.subarray(head.length)]);
}
