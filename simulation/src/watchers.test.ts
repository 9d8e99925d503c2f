import { type EventDraft, HEADERS, type StoredEvent } from '@holdfast/core';
import { expect, test } from 'vitest';
import { calmWorld, invariants } from './calm-world.fixture.ts';
import { checkQuiet, checkStep } from './checkers.ts';
import { hasCoda, PLAYS, type Play, playOne } from './coda.ts';
import { removeFolder } from './ledger.ts';
import { checkIntent } from './oracle-intent.ts';
import { inOwnWorld } from './own-world.ts';
import { probeLedger } from './probes.ts';
import { createWorld, type World } from './world.ts';

type Device = World['devices'][number];

/** A checker that cannot fail is a defect: each is shown the violation that it is for. */
const draft = (id: string, base: number, change: EventDraft['change'], prior?: string): EventDraft =>
  ({ id, base, change, entityType: 'note', entityId: 'n', ...(prior === undefined ? {} : { prior }) }) as EventDraft;
const logged = (of: EventDraft, entityVersion: number, actor: string): StoredEvent =>
  ({ ...of, entityVersion, version: entityVersion, actor }) as StoredEvent;
const set = (title: string) => ({ op: 'update', set: { title } }) as const;

test('[I13 I14] whose word is lost without a question is found, whatever base a device has made of it', () => {
  const created = logged(draft('c', 0, { op: 'create', fields: { title: 'new' } }), 1, 'ben');
  const theirs = logged(draft('t', 1, set('theirs')), 2, 'ben');
  const mine = draft('m', 1, set('mine'));
  const author = { name: 'x', account: 'ana', said: new Map([['a', [mine]]]) };
  const judge = (...events: readonly StoredEvent[]) => invariants(checkIntent(author, [created, ...events]));
  expect(judge(theirs, logged({ ...mine, base: 2 }, 3, 'ana'))).toEqual(['I13']);
  expect(judge(logged(mine, 2, 'ana'))).toEqual([]);
  expect(judge(logged(draft('m', 1, set('another')), 2, 'ana'))).toEqual(['I13']);
  expect(judge(logged(draft('t', 1, { op: 'delete' }), 2, 'ben'), logged(mine, 3, 'ana'))).toEqual(['I13']);
  const deleting = { ...author, said: new Map([['a', [draft('m', 1, { op: 'delete' })]]]) };
  const events = [created, theirs, logged(draft('m', 2, { op: 'delete' }), 3, 'ana')];
  expect(invariants(checkIntent(deleting, events))).toEqual(['I13']);
  expect(checkIntent(deleting, [created, logged(draft('m', 1, { op: 'delete' }), 2, 'ana')])).toEqual([]);
});

test('[I16 I19 I20 I21 I23] a row that goes where it may not is found', async () => {
  const { world, end } = await calmWorld();
  const [ana] = world.devices as [Device];
  const database = ana.engine?.database;
  const did = (sql: string) => {
    database?.exec(sql);
    return invariants(ana.takeFlaws());
  };
  expect(ana.takeFlaws()).toEqual([]);
  const one = '(SELECT max(seq) FROM hf_permit)';
  expect(did(`UPDATE hf_permit SET disposition = 'unknown' WHERE seq = ${one}`)).toEqual(['I19']);
  // A trigger sees what was open before.
  const open = `INSERT INTO hf_permit SELECT seq + 1, permit_id || '-', log, generation, number + 1, host_instance, owner_mode, class, command_id, boundary, 'issued-idle', 'not-started', reason, issued_at, due_at, moved_at, NULL FROM hf_permit WHERE seq = ${one}`;
  expect(did(open)).toEqual([]);
  expect(did(`UPDATE hf_permit SET state = 'abandoned-reconcile-required' WHERE seq = ${one}`)).toContain('I20');
  expect(
    did(`${open}; UPDATE hf_permit SET class = 'dispatch', state = 'gateway-in-flight' WHERE seq = ${one}`),
  ).toEqual([]);
  expect(did(`UPDATE hf_permit SET state = 'abandoned-reconcile-required' WHERE seq = ${one}`)).toEqual(['I21']);
  expect(did('UPDATE hf_coordinator SET generation = generation - 1')).toEqual(['I23']);
  database?.exec('UPDATE hf_coordinator SET generation = generation + 1');
  ana.network.rules.offline = true;
  ana.commit((tx) => tx.note.create({ title: 'three' }));
  database?.exec("UPDATE hf_outbox SET state = 'waiting'");
  const rebase = (times: number) => `UPDATE hf_outbox SET request_id = 'request-${times}'`;
  for (let times = 1; times <= 8; times += 1) expect(did(rebase(times))).toEqual([]);
  expect(did(rebase(9))).toEqual(['I16']);
  end();
});

test('[I05 I17 I20 I21] what leaves too early, under a second id, with other bytes, or without a permit is found', async () => {
  const { world, end } = await calmWorld();
  const [ana] = world.devices as [Device];
  const [push] = ana.pushes;
  if (push === undefined) throw new Error('nothing was pushed');
  const leave = (body: string, permit: string) => {
    ana.sent.leaves(ana.engine?.database as never, { url: push.url, headers: { [HEADERS.permit]: permit }, body });
    return invariants(ana.takeFlaws());
  };
  ana.engine?.database.exec(
    "UPDATE hf_permit SET state = 'gateway-in-flight', ended_at = NULL WHERE number = (SELECT max(number) FROM hf_permit)",
  );
  ana.takeFlaws();
  const number = String(ana.engine?.database.prepare('SELECT max(number) AS n FROM hf_permit').get()?.['n']);
  expect(leave(push.body, number)).toEqual([]);
  expect(leave(push.body, '1')).toEqual(['I20']);
  expect(leave(push.body.replace(/"salt":"./, '"salt":"-'), number)).toEqual(['I05']);
  expect(leave(push.body.replace(/"requestId":"[^"]*"/, '"requestId":"another"'), number)).toEqual(['I21']);
  ana.network.rules.offline = true;
  const parked = ana.commit((tx) => tx.note.create({ title: 'three' }));
  const needing = JSON.stringify({ operations: [{ requestId: 'r', actionId: 'r', events: [], needs: [parked] }] });
  expect(leave(needing, number)).toEqual(['I17']);
  end();
});

test('[I12 I18 I20 I26 I28 I30] what the rows of a file say of the past, and should not, is found', async () => {
  const { world, end } = await calmWorld();
  const [ana, ben] = world.devices as [Device, Device];
  const found = async (sql: string, undo: string) => {
    ben.engine?.database.exec(sql);
    const said = invariants(await checkQuiet(world));
    ben.engine?.database.exec(undo);
    return said;
  };
  expect(await checkQuiet(world)).toEqual([]);
  expect(
    await found(
      `INSERT INTO hf_journal (at, kind, facts) VALUES ('', 'handshake', '{"signature":"differs"}')`,
      "DELETE FROM hf_journal WHERE facts LIKE '%differs%'",
    ),
  ).toEqual(['I12']);
  expect(
    await found(
      'INSERT INTO hf_outcome VALUES (\'early\', \'\', \'{"state":"ordered","log":"main","version":99}\', 0)',
      "DELETE FROM hf_outcome WHERE action_id = 'early'",
    ),
  ).toEqual(['I18']);
  const many = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) INSERT INTO hf_journal (at, kind, facts) SELECT '', 'many', '{}' FROM n`;
  expect(await found(many, "DELETE FROM hf_journal WHERE kind = 'many'")).toEqual(['I28']);
  const old = `INSERT INTO hf_permit SELECT 90, 'old', log, 0, 90, host_instance, owner_mode, 'pull', NULL, boundary, 'issued-idle', 'not-started', NULL, issued_at, due_at, moved_at, NULL FROM hf_permit LIMIT 1`;
  expect(await found(old, 'DELETE FROM hf_permit WHERE seq = 90')).toContain('I20');
  const draftOf = 'UPDATE hf_event SET draft = replace(draft, ';
  expect(await found(`${draftOf}'"two"', '"TWO"')`, `${draftOf}'"TWO"', '"two"')`)).toContain('I26');
  // A status that counts what is not so.
  ana.network.rules.offline = true;
  ana.commit((tx) => tx.note.create({ title: 'three' }));
  const { status } = ana.engine?.sync ?? {};
  Object.defineProperty(ana.engine?.sync, 'status', { value: { ...status, unsent: 0 } });
  expect(invariants(checkStep(world))).toEqual(['I30']);
  end();
});

test('[I02 I04 I06 I17 I19 I22 I24 I27] a ledger that takes whatever comes is found', async () => {
  const { world, end } = await calmWorld();
  const pushes = world.devices.flatMap((device) => device.pushes);
  expect(await probeLedger(world, pushes, world.random.fork('probes'))).toEqual([]);
  const answer = {
    status: 200,
    headers: new Headers(),
    text: () => Promise.resolve('{"results":[{"status":"accepted"}]}'),
  };
  Object.assign(world.ledger, { fetch: () => Promise.resolve(answer) });
  const found = invariants(await probeLedger(world, pushes, world.random.fork('again')));
  for (const id of ['I02', 'I04', 'I06', 'I17', 'I19', 'I22', 'I24', 'I27']) expect(found).toContain(id);
  Object.assign(answer, { text: () => Promise.resolve('{"results":[{"status":"refused"}]}') });
  expect(invariants(await probeLedger(world, pushes, world.random.fork('never')))).toContain('I29');
  end();
});

test('[I12 I13] a play tells of an end that is not its end', async () => {
  const { world, end } = await calmWorld();
  const [quarrel] = PLAYS;
  if (quarrel === undefined) throw new Error('there is no play');
  expect(await playOne(world, quarrel, world.random.fork('plays'))).toEqual([]);
  expect(
    invariants(
      await playOne(world, { ...quarrel, play: async (stage) => stage.expect(false, 'another end') }, world.random),
    ),
  ).toEqual(['I13']);
  const own: Play['play'] = (stage) => inOwnWorld(stage, {}, async (inside) => inside.expect(false, 'another end'));
  expect(invariants(await playOne(world, { ...quarrel, play: own }, world.random))).toEqual(['I13']);
  end();
  expect([1, 2, 3, 4, 5, 6, 7].filter((seed) => drawsCoda(seed))).toEqual([5, 6, 7]);
});

function drawsCoda(seed: number): boolean {
  const world = createWorld(seed, { faults: [] });
  const does = hasCoda(world);
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
  return does;
}
