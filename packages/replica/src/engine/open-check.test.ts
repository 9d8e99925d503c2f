import { defineSchema, entity, schemaData, text } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(defineSchema({ issue: entity({ title: text() }) }));
const devices: Device[] = [];
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});

function withOneIssue(): Device {
  const ledger = new TinyLedger(nodeDigest);
  const device = new Device({ schema, seed: 1 });
  devices.push(device);
  device.bootstrap(ledger);
  device.create('issue', { title: 'A' }, 'i');
  device.settle(ledger);
  return device;
}

test('[I07 I25] a log whose only row waits to be deleted fits itself: nothing is fetched again', () => {
  const device = withOneIssue();
  device.commit([{ do: 'delete', entity: 'issue', id: 'i' }]);
  device.reopen();
  expect(device.state.log('main')).toMatchObject({ stage: 'visible', head: 1 });
});

test('[I07 I25] a log whose rows were wiped is fetched again, and what is unsent stays', () => {
  const device = withOneIssue();
  device.create('issue', { title: 'B' }, 'j');
  device.database.exec('DELETE FROM main.issue');
  device.reopen();
  expect(device.state.log('main')).toMatchObject({ stage: 'new', head: 0 });
  expect(device.state.counts().unsent).toBe(1);
});
