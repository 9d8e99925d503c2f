import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { bareIssue, insertIssues } from './bare/device.ts';
import { bareEdit, bareId } from './bare/event.ts';
import { openBareHub } from './bare/hub.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { headOf } from './subscriber.ts';
import { timed } from './waiting.ts';
import { openWorld, WORKSPACE, type World } from './world.ts';
import { createWriter, newId } from './writer.ts';

const WRITERS = 8;
const BATCH = 10;
const ROUNDS = scaled(100);

/** What the ledger appends with full durability, over HTTP, when writers work at once. */
export function append(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'append',
    what: '8 writers over HTTP, batches of 10, full durability',
    unit: 'events/s',
    bare: 'the same writers at a server that inserts, updates and tells, one durable transaction per group',
    goal: { atLeast: 0.5 },
    run: async () => {
      runs += 1;
      const world = await openWorld(folder, `append-${runs}`);
      try {
        const events = WRITERS * BATCH * ROUNDS;
        return {
          value: (events / (await oursOf(world))) * 1000,
          bare: (events / (await bareOf(world.folder))) * 1000,
        };
      } finally {
        await world.close();
      }
    },
  };
}

async function oursOf(world: World): Promise<number> {
  const texts = issues(WRITERS * BATCH);
  // The issues are there before, as they are on the bare side.
  const all = await (await createWriter(world)).create(texts);
  const agent = new Agent({ keepAlive: true, maxSockets: WRITERS });
  const url = `${world.ledger.url}/v1/workspaces/${WORKSPACE}/logs/main/push`;
  const start = await headOf(world.ledger.url);
  // Bodies are made before; a device has its drafts ready, too. Round by round: what is sent together was made together,
  // and its ids, which begin with the time, lie together.
  const writers = Array.from({ length: WRITERS }, (_, writer) => ({
    replica: { id: randomBytes(16).toString('hex'), generation: 1, instance: randomBytes(16).toString('hex') },
    ids: all.slice(writer * BATCH, (writer + 1) * BATCH),
    operations: [] as ReturnType<typeof operationOf>[],
  }));
  for (let round = 0; round < ROUNDS; round += 1)
    for (const { ids, operations } of writers)
      operations.push(operationOf(ids, round, (at) => `${texts[all.indexOf(ids[at] as string)]?.title} ${round}`));
  const ms = await timed(() =>
    Promise.all(
      writers.map(async ({ replica, operations }) => {
        let position = start;
        let permit = 0;
        for (const operation of operations) {
          permit += 1;
          const body = { position, replica: { ...replica, permit }, operations: [operation] };
          const answer = JSON.parse(await post(url, agent, JSON.stringify(body)));
          if (answer.results?.[0]?.status !== 'accepted') throw new Error(JSON.stringify(answer).slice(0, 500));
          position = { epoch: answer.epoch, version: answer.through.version, chain: answer.through.chain };
        }
      }),
    ),
  );
  agent.destroy();
  return ms;
}

/** An operation of one edit for each of these issues. */
const operationOf = (ids: readonly string[], round: number, titleOf: (at: number) => string) => ({
  requestId: newId(),
  actionId: newId(),
  merge: 'fields',
  events: ids.map((entityId, at) => ({
    at: '2026-11-30T00:00:00.000Z',
    base: round + 1,
    change: { op: 'update', set: { title: titleOf(at) } },
    entityId,
    entityType: 'issue',
    id: newId(),
    salt: randomBytes(16).toString('hex'),
    type: 'issue.updated',
  })),
});

async function bareOf(folder: string): Promise<number> {
  const texts = issues(WRITERS * BATCH);
  const hub = await openBareHub(join(folder, 'hub.db'));
  insertIssues(
    hub.db,
    texts.map((issue, at) => bareIssue(issue, bareId('issue', at))),
  );
  const agent = new Agent({ keepAlive: true, maxSockets: WRITERS });
  const ms = await timed(() =>
    Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        let after = 0;
        for (let round = 0; round < ROUNDS; round += 1) {
          const events = Array.from({ length: BATCH }, (_, n) => {
            const at = writer * BATCH + n;
            return bareEdit(round * WRITERS * BATCH + at, bareId('issue', at), `${texts[at]?.title} ${round}`);
          });
          const answer = JSON.parse(await post(`${hub.url}/?after=${after}`, agent, JSON.stringify(events)));
          after = answer.through;
        }
      }),
    ),
  );
  agent.destroy();
  await hub.close();
  return ms;
}

const post = (url: string, agent: Agent, body: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = { Authorization: 'Bearer token', 'Content-Type': 'application/json' };
    const asked = request(url, { agent, method: 'POST', headers }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.once('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    });
    asked.once('error', reject);
    asked.end(body);
  });
