import http from 'node:http';
import https from 'node:https';
import type { Fetch, NeverSent, WireRequest, WireResponse } from '@holdfast/core';

/**
 * The engine's `Fetch` over `node:http`.
 *
 * Owns the connections that it keeps open. Follows no redirect. What matters is what a failure proves (PM6): before a
 * connection of its own is there, no byte of a request has left; on a connection that was kept open it may have (F75).
 * `node:http` and not the global `fetch`, which takes twice the time per small request and hides whether bytes left.
 */
export interface NodeFetchOptions {
  /** Connections to one ledger at a time. */
  readonly socketsMax?: number;
  /** Milliseconds that an idle connection is kept. Shorter than proxies do, so that they seldom close first. */
  readonly keepAliveMs?: number;
  /** Bytes of one answer. Beyond: the answer is given up (F85). */
  readonly answerBytesMax?: number;
}

export interface NodeFetch {
  readonly fetch: Fetch;
  /** Closes idle connections; a request that is under way ends by itself. */
  close(): void;
}

const SOCKETS_MAX = 8;
const KEEP_ALIVE_MS = 25_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export function createNodeFetch(options: NodeFetchOptions = {}): NodeFetch {
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.socketsMax ?? SOCKETS_MAX,
    timeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
  };
  const agents = { 'http:': new http.Agent(agentOptions), 'https:': new https.Agent(agentOptions) };
  const answerBytesMax = options.answerBytesMax ?? ANSWER_BYTES_MAX;
  return {
    fetch: (url, request) => send(new URL(url), request, agents, answerBytesMax),
    close: () => {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

function send(
  url: URL,
  request: WireRequest,
  agents: { readonly 'http:': http.Agent; readonly 'https:': https.Agent },
  answerBytesMax: number,
): Promise<WireResponse> {
  return new Promise((resolve, reject) => {
    if (request.signal.aborted) return reject(neverSent('The request was given up before it began.'));
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      return reject(neverSent(`A ledger is reached by http or https, not by ${url.protocol}`));
    const client = url.protocol === 'https:' ? https : http;
    const body = request.body === undefined ? null : Buffer.from(request.body, 'utf8');
    const sending = client.request(url, {
      method: request.method,
      agent: agents[url.protocol],
      headers: { ...request.headers, ...(body === null ? {} : { 'content-length': body.byteLength }) },
    });
    let mayHaveLeft = false;
    const connected = () => {
      mayHaveLeft = true;
    };
    sending.once('socket', (socket) => {
      if (sending.reusedSocket || !socket.connecting) connected();
      else socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', connected);
    });
    const abort = () => sending.destroy(new Error('The request was given up.'));
    const over = () => request.signal.removeEventListener('abort', abort);
    request.signal.addEventListener('abort', abort);
    const failed = (cause: Error) => {
      over();
      reject(mayHaveLeft ? cause : neverSent(cause.message, cause));
    };
    sending.on('error', failed);
    sending.on('response', (answer) => {
      read(answer, request, answerBytesMax, (outcome) => {
        over();
        if (outcome instanceof Error) reject(outcome);
        else resolve(responseOf(answer, outcome));
      });
    });
    sending.end(body ?? undefined);
  });
}

/** Reads the whole answer, telling progress. An answer that ends early is no answer. */
function read(
  answer: http.IncomingMessage,
  request: WireRequest,
  bytesMax: number,
  done: (outcome: Buffer | Error) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) return answer.destroy(new Error(`The answer has more than ${bytesMax} bytes.`));
    chunks.push(chunk);
    request.progress?.(chunk.byteLength);
  });
  answer.on('error', done);
  answer.on('end', () => done(answer.complete ? Buffer.concat(chunks) : new Error('The answer ended early.')));
  answer.on('close', () => done(new Error('The answer ended early.')));
}

const responseOf = (answer: http.IncomingMessage, body: Buffer): WireResponse => ({
  status: answer.statusCode ?? 0,
  redirected: false,
  headers: {
    get: (name) => {
      const value = answer.headers[name.toLowerCase()];
      return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
    },
  },
  text: async () => STRICT_UTF8.decode(body),
});

/** A byte that is no UTF-8 makes the answer unreadable, instead of another text (F78). */
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** No byte left this device: the request's outcome is known, it has none. */
class NotSent extends Error implements NeverSent {
  override readonly name = 'NotSent';
  readonly noByteLeft = true;
}
const neverSent = (why: string, cause?: unknown) => new NotSent(why, cause === undefined ? undefined : { cause });
