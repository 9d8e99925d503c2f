import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Engine } from './engine/engine.ts';
import type { RequestFacts } from './http/app.ts';

/** Prometheus metrics of one ledger: numbers only, no tenant and no account (S25). */
export interface Metrics {
  observe(facts: RequestFacts): void;
  text(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(engine: Engine): Metrics {
  const registry = new Registry();
  const requests = new Counter({
    name: 'holdfast_requests_total',
    help: 'Answered requests',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'holdfast_request_seconds',
    help: 'Time from a request to its answer',
    labelNames: ['route'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers: [registry],
  });
  const gauge = (name: string, help: string, read: () => Promise<number>) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(await read());
      },
    });
  const status = async () => engine.status();
  gauge('holdfast_sockets', 'Open realtime sockets', async () => (await status()).sockets);
  gauge('holdfast_subscriptions', 'Followed logs on open sockets', async () => (await status()).subscriptions);
  gauge('holdfast_waiting_pushes', 'Pushes that wait for a group commit', async () => (await status()).waiting);
  gauge('holdfast_appended_events', 'Events appended since start', async () => (await status()).appended.events);
  gauge(
    'holdfast_appended_operations',
    'Operations appended since start',
    async () => (await status()).appended.operations,
  );
  gauge('holdfast_append_groups', 'Group commits since start', async () => (await status()).appended.groups);
  return {
    observe: ({ route, method, status: code, ms }) => {
      requests.inc({ route, method, status: String(code) });
      seconds.observe({ route }, ms / 1000);
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
