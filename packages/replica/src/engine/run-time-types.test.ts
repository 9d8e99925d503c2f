import { defineSchema, entity, type JsonObject, RUN_TIME_TYPE, schemaData, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(defineSchema({ issue: entity({ title: text() }) }));

/** What a log may hold, whoever wrote it: this ledger checks nothing. */
function say(ledger: TinyLedger, type: string, id: string, fields: unknown): void {
  const before = ledger.entity(type, id);
  const name = `said-${ledger.head}`;
  const change = before === undefined ? { op: 'create', fields } : { op: 'update', set: fields };
  const facts = { at: '2026-01-01T00:00:00.000Z', salt: '0'.repeat(32), type: `${type}.said` };
  const event = { ...facts, id: name, entityType: type, entityId: id, base: before?.version ?? 0, change };
  const [result] = ledger.push([{ requestId: name, actionId: name, events: [event] } as never], {
    actor: 'eve',
    replicaId: 'f'.repeat(32),
  });
  expect(result?.status).toBe('accepted');
}

const kinds = (fields: Record<string, string>): JsonObject =>
  Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, { kind }]));
const plain = { fields: kinds({ name: 'text' }) };
const wide = (prefix: string) =>
  kinds(Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`${prefix}x${at}`, 'text'])));

/** Definitions of one type, in the order in which the log has them. */
const DEFINITIONS: Readonly<Record<string, readonly unknown[]>> = {
  'a field of another kind': [plain, { fields: kinds({ name: 'integer' }) }],
  'a field that differs in case': [plain, { fields: kinds({ nAme: 'text' }) }],
  'more columns than a table may have': ['a', 'b', 'c'].map((one) => ({
    fields: wide(one),
  })),
  'columns that a full-text index keeps to itself': [
    { ...plain, fields: kinds({ rank: 'text', name: 'text' }), search: ['rank'] },
  ],
  'local after all': [plain, { ...plain, local: true }],
  'a key that is no list': [{ ...plain, key: 'name' }],
  'a search that is no list': [{ ...plain, search: 'name' }],
  'rules that are none': [
    { ...plain, rules: { one: null } },
    { ...plain, rules: { one: { rule: 'all', of: 'x' } } },
  ],
  'no fields': [{ fields: [{ kind: 'text' }] }, 'nonsense', 7],
};

test.each(Object.entries(DEFINITIONS))(
  '[F188 SC4 DG2] a log that defines %s stops nobody, and parts nobody from it',
  (_, definitions) => {
    const ledger = new TinyLedger(nodeDigest);
    const device = new Device({ schema });
    const check = () => {
      device.pullAll(ledger);
      expect(examine(device.state.store).findings).toEqual([]);
      expect(device.state.log('main')?.signature).toBe(ledger.signature);
    };
    try {
      device.bootstrap(ledger);
      for (const [at, definition] of definitions.entries()) {
        say(ledger, RUN_TIME_TYPE, 'plane', { schema: definition });
        say(ledger, 'plane', `p${at}`, { name: at === 0 ? 'x' : at });
        check();
        device.fetch(ledger, 'repair', 3);
        check();
      }
      say(ledger, 'plane', 'p0', { name: '7' });
      check();
      device.reopen();
      say(ledger, 'plane', 'p0', { name: 7 });
      check();
    } finally {
      device.remove();
    }
  },
);
