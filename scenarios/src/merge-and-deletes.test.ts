import { expect, test } from 'vitest';
import { createField, createNote, type Field, type FieldDevice, goOffline, goOnline, titles } from './field.fixture.ts';

const pair = (field: Field): [FieldDevice, FieldDevice] => field.devices as [FieldDevice, FieldDevice];

// Seen to fail with ingest.ts passing over the deletions of others.
test.each([1, 10, 12])(
  '[I12] deletes never reach a disconnected client: %s of 12 records are deleted while it is away',
  async (count) => {
    using field = await createField(41);
    const [ana, ben] = pair(field);
    const ids = Array.from({ length: 12 }, (_, at) => createNote(ana, `note ${at}`));
    await field.pass();
    expect(titles(ben)).toHaveLength(12);
    goOffline(ben);
    for (const id of ids.slice(0, count)) ana.commit((tx) => tx.note.delete(id as never));
    await field.pass();
    goOnline(ben);
    await field.pass();
    expect(titles(ben)).toHaveLength(12 - count);
    expect(titles(ben)).toEqual(titles(ana));
    await field.expectHealthy();
  },
);

// Seen to fail with rebase-event.ts deleting what others have edited.
test.each(['the edit', 'the delete'])(
  '[I12 I15] client and server use different delete rules: %s is first, three rounds, and no device keeps a ghost',
  async (first) => {
    using field = await createField(42);
    const [ana, ben] = pair(field);
    for (let round = 0; round < 3; round += 1) {
      const id = createNote(ana, `round ${round}`);
      await field.pass();
      for (const device of [ana, ben]) goOffline(device);
      ana.commit((tx) => tx.note.update(id as never, { title: `edited ${round}` }));
      ben.commit((tx) => tx.note.delete(id as never));
      for (const device of first === 'the edit' ? [ana, ben] : [ben, ana]) {
        goOnline(device);
        await field.pass();
      }
      await field.expectHealthy();
      // One decision on every device and at the ledger, whoever came first: work is not lost, and who deleted is told.
      expect(titles(ana)).toContain(`edited ${round}`);
      expect(titles(ben)).toEqual(titles(ana));
      for (const device of [ana, ben])
        expect(device.engine?.state.desk().filter(({ needs }) => needs === 'answer')).toEqual([]);
      expect(ben.engine?.state.desk().filter(({ kind }) => kind === 'not-deleted')).toHaveLength(round + 1);
    }
  },
);
