import { counter, defineSchema, entity, oneOf, ref, serial, setOf, text, time } from '@holdfast/core';

/** The issue tracker of `holdfast demo`, `holdfast dev` and `holdfast import github-issues`. */
export const trackerSchema = defineSchema({
  project: entity({ name: text() }, { key: ['name'] }),
  issue: entity(
    {
      number: serial(),
      project: ref('project'),
      /** Its number where it came from; absent for issues made here. */
      origin: text({ optional: true }),
      title: text({ max: 500 }),
      body: text({ default: '' }),
      status: oneOf(['open', 'doing', 'closed'], { otherwise: 'open', onClash: 'last', default: 'open' }),
      assignee: text({ optional: true, onClash: 'last' }),
      labels: setOf(text()),
      votes: counter(),
      closedAt: time({ optional: true, onClash: 'last' }),
    },
    {
      index: [['status'], ['project', 'status']],
      search: ['title', 'body'],
      events: (e) => ({
        closed: (at: string) => e.set({ status: 'closed', closedAt: at }),
        reopened: () => e.set({ status: 'open', closedAt: null }),
      }),
    },
  ),
  comment: entity(
    { issue: ref('issue', { onDelete: 'delete-too' }), author: text(), body: text(), writtenAt: time() },
    { index: [['issue', 'arrival']] },
  ),
});
export type TrackerSchema = typeof trackerSchema;
