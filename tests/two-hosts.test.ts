import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Device, type Ledger, Stage, WHOLE } from './processes/stage.ts';
import { isPush, PASS, startProxy, type TcpProxy } from './processes/tcp-proxy.ts';

/** Two processes on one replica file, both alive: the second is told, or takes over while the first is in a push. */
const stage = new Stage();
let ledger: Ledger;
let proxy: TcpProxy;
let first: Device;
let made = 0;

beforeAll(async () => {
  ledger = await stage.startLedger();
  proxy = await startProxy(stage.url);
  first = await stage.startDevice('ana', proxy.url);
  await first.ask('settle', null);
}, 60_000);
afterAll(async () => {
  await stage.close();
  await proxy[Symbol.asyncDispose]();
});

async function make(device: Device): Promise<void> {
  made += 1;
  stage.committed.add((await device.ask('create', [`issue ${made}`])).action);
}

test('[F169] a second process is told who has the file and how to go on, and the first goes on', async () => {
  const refused = await stage.startDevice('ana', proxy.url).catch(String);
  expect(refused).toContain('replica-in-use');
  expect(refused).toContain(`kill ${first.pid}`);
  await make(first);
  expect(await first.ask('settle', null)).toEqual({ settled: true, attention: 0 });
  await first.stop();
  // Nothing stale is left: whoever comes after the first is let in.
  first = await stage.startDevice('ana', proxy.url);
  expect(await first.ask('issues', null)).toHaveLength(made);
});

/** Where the push of the first process is while the second takes over and finishes the work. */
test.each(['answer', 'request'] as const)(
  '[OW2 I01 I13 I21 I22 F169] taken over with its push under way (its %s comes late), the first ends and all is there once',
  async (late) => {
    const { promise: isLate, resolve: arrive } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>();
    const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
    await first.ask('offline', null);
    for (let at = 0; at < 3; at += 1) await make(first);
    proxy.rule = async (request, ask) => {
      if (!isPush(request)) return ask();
      proxy.rule = PASS;
      if (late === 'answer') {
        const answer = await ask();
        hold();
        await isLate;
        end();
        return answer;
      }
      hold();
      await isLate;
      return ask().finally(end);
    };
    first.tell('online', null);
    await isHeld;
    const { unsent, obligationsOpened } = stage.facts('ana');
    expect(unsent).toBe(3);

    const second = await stage.startDevice('ana', proxy.url, 'take-over');
    await expect(first.ask('create', ['fenced'])).rejects.toThrow('taken over');
    await make(second);
    expect(await second.ask('settle', null)).toEqual({ settled: true, attention: 0 });
    arrive();
    await isOver;
    await expect(first.ask('issues', null)).rejects.toThrow('taken over');
    await make(second);
    expect(await second.ask('settle', null)).toEqual({ settled: true, attention: 0 });

    expect(await second.ask('issues', null)).toHaveLength(made);
    expect(await stage.audit(ledger, ['ana'])).toEqual(WHOLE);
    expect(stage.facts('ana').obligationsOpened - obligationsOpened).toBeGreaterThanOrEqual(3);
    await first.stop();
    first = second;
  },
);
