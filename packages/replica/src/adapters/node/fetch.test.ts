import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import type { WireRequest } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { createNodeFetch, type NodeFetch } from './fetch.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function serve(handle: http.RequestListener): Promise<{ url: string; server: http.Server }> {
  const server = http.createServer(handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push({ close: () => void server.close(() => undefined) }, { close: () => server.closeAllConnections() });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
const nodeFetch = (options?: Parameters<typeof createNodeFetch>[0]): NodeFetch => {
  const made = createNodeFetch(options);
  open.push(made);
  return made;
};
const post = (more: Partial<WireRequest> = {}): WireRequest => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"a":"ä"}',
  signal: new AbortController().signal,
  ...more,
});
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'answered',
    (cause: { noByteLeft?: boolean }) => (cause.noByteLeft === true ? 'never sent' : 'unknown'),
  );

test('[PM6] a request brings its body and gets status, headers, text and progress', async () => {
  const { url } = await serve((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => {
      body += part;
    });
    request.on('end', () => response.writeHead(201, { 'X-Answer': 'yes' }).end(`got ${body}`));
  });
  let bytes = 0;
  const progress = (more: number) => {
    bytes += more;
  };
  const answer = await nodeFetch().fetch(`${url}/v1/x?y=1`, post({ progress }));
  expect([answer.status, answer.headers.get('x-ANSWER'), answer.headers.get('no'), await answer.text()]).toEqual([
    201,
    'yes',
    null,
    'got {"a":"ä"}',
  ]);
  expect(bytes).toBe(14);
});

test('[PM6 F83] nobody listening proves that no byte left', async () => {
  const { url, server } = await serve(() => undefined);
  server.close();
  await once(server, 'close');
  expect(await failure(nodeFetch().fetch(url, post()))).toBe('never sent');
  expect(await failure(nodeFetch().fetch('http://name.invalid/', post()))).toBe('never sent');
  expect(await failure(nodeFetch().fetch('ftp://name.invalid/', post()))).toBe('never sent');
});

test('[PM6 F75 F83] a connection that breaks after it was made leaves the outcome unknown, also a kept one', async () => {
  let requests = 0;
  const { url } = await serve((request, response) => {
    requests += 1;
    if (requests === 1) response.end('first');
    else request.socket.destroy();
  });
  const { fetch } = nodeFetch();
  await fetch(url, post());
  expect(await failure(fetch(url, post()))).toBe('unknown');
});

test('[F112] a redirect is an answer and is not followed', async () => {
  const { url } = await serve((_, response) => response.writeHead(302, { location: '/login' }).end());
  const answer = await nodeFetch().fetch(url, post());
  expect([answer.status, answer.headers.get('location')]).toEqual([302, '/login']);
});

test('[F78 F85] an answer that ends early, is no UTF-8 or is too large is no answer', async () => {
  const cut = net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"half":');
  });
  cut.listen(0, '127.0.0.1');
  await once(cut, 'listening');
  open.push(cut);
  const { port } = cut.address() as AddressInfo;
  expect(await failure(nodeFetch().fetch(`http://127.0.0.1:${port}`, post()))).toBe('unknown');
  const { url } = await serve((_, response) => response.end(Buffer.from([0xff, 0xfe])));
  await expect((await nodeFetch().fetch(url, post())).text()).rejects.toThrow();
  const { url: large } = await serve((_, response) => response.end('x'.repeat(2_000)));
  expect(await failure(nodeFetch({ answerBytesMax: 1_000 }).fetch(large, post()))).toBe('unknown');
});

test('[PM12] giving up ends the request: unknown once it is on its way, never sent before', async () => {
  const arrived = Promise.withResolvers<void>();
  const { url } = await serve(() => arrived.resolve());
  const cancel = new AbortController();
  const waiting = failure(nodeFetch().fetch(url, post({ signal: cancel.signal })));
  await arrived.promise;
  cancel.abort();
  expect(await waiting).toBe('unknown');
  expect(await failure(nodeFetch().fetch(url, post({ signal: cancel.signal })))).toBe('never sent');
});
