import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkSchema, nextSnapshot, schemaData } from '@holdfast/core';
import { serveLedger, staticTokens } from '@holdfast/ledger';
import { createClient } from '@holdfast/replica';
import { createWorld } from '@holdfast/replica/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { schema } from './schema.ts';
import { closeStaleIssues } from './t07-background-job.ts';
import { config } from './t09-admission.ts';
import { after, before } from './t11-migrating.ts';
import { claimNext, createAndWait } from './t13-read-decide-write.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-tasks-'));
let served: Awaited<ReturnType<typeof serveLedger>>;
beforeAll(async () => {
  served = await serveLedger({
    schema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens({
      ana: { account: 'ana', grants: { acme: 'writer' } },
      closer: { account: 'service:closer', grants: { acme: 'writer' } },
    }),
    createOnFirstUse: true,
    listen: { port: 0 },
    admin: { port: 0 },
    logLevel: 'silent',
  });
});
afterAll(async () => {
  await served.close();
  rmSync(folder, { recursive: true, force: true });
});
const openAna = () =>
  createClient({ schema, dir: join(folder, 'ana'), ledger: served.url, account: { id: 'ana', token: () => 'ana' } });

describe('the tasks, as programs', () => {
  test('[P1 SY2] T7: a background job closes what is stale, and everybody sees it', async () => {
    await using client = openAna();
    await using replica = await client.open('acme');
    const project = await replica.commit((tx) => tx.project.create({ name: 'P' }));
    const id = await replica.commit((tx) => tx.issue.create({ project, title: 'Forgotten', status: 'doing' }));
    await replica.settle();
    const { closed, exitCode } = await closeStaleIssues({
      dir: join(folder, 'closer'),
      ledger: served.url,
      token: () => 'closer',
      workspace: 'acme',
      staleBefore: '2999-01-01T00:00:00.000Z',
    });
    expect([closed, exitCode]).toEqual([1, 0]);
    await replica.settle();
    const row = await replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
    expect([row?.status, row?.updatedBy, row?.sync]).toEqual(['done', 'service:closer', 'synced']);
    expect(row?.closedAt).toMatch(/Z$/);
  });

  test('[CM4 LQ2] T13: take the next issue, and follow one write to the ledger', async () => {
    await using client = openAna();
    await using replica = await client.open('acme');
    const project = await replica.commit((tx) => tx.project.create({ name: 'Q' }));
    const me = await replica.commit((tx) => tx.person.put({ account: 'ana', name: 'Ana' }));
    const { id, version } = await createAndWait(replica, 'Next', project);
    expect(version).toBeGreaterThan(0);
    expect(await claimNext(replica, me)).toBe(id);
    const row = await replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
    expect([row?.status, row?.assignee, typeof row?.number]).toEqual(['doing', me, 'number']);
  });

  test('[MG3 DG2] T12: two people edit different fields of one issue offline', async () => {
    await using world = await createWorld({ schema, seed: 7 });
    const ana = await world.device('ana');
    const ben = await world.device('ben');
    const project = await ana.replica.commit((tx) => tx.project.create({ name: 'P' }));
    const id = await ana.replica.commit((tx) => tx.issue.create({ project, title: 'A', status: 'todo' }));
    await world.settle();
    ana.offline();
    ben.offline();
    await ana.replica.commit((tx) => tx.issue.update(id, { title: 'Ana' }));
    await ben.replica.commit((tx) => tx.issue.update(id, { priority: 2 }));
    await ben.crash();
    await ben.restart();
    ana.online();
    ben.online();
    await world.settle();
    const row = await ben.replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
    expect([row?.title, row?.priority, row?.sync]).toEqual(['Ana', 2, 'synced']);
    expect(await world.converged()).toBe(true);
  });

  test('[SC2] T11: the change is safe for devices in the field', () => {
    const changes = checkSchema(nextSnapshot(null, schemaData(before)), schemaData(after));
    expect(changes.map(({ verdict }) => verdict)).not.toContain('refused');
    expect(changes.length).toBeGreaterThanOrEqual(3);
  });

  test('[LG14] T9: the configuration is one that a ledger takes', () => {
    expect(Object.keys(config.admit ?? {})).toEqual(['comment', 'issue']);
  });
});
