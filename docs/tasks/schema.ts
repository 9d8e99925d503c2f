import {
  counter,
  defineSchema,
  entity,
  flag,
  integer,
  oneOf,
  rank,
  ref,
  serial,
  setOf,
  text,
  time,
} from '@holdfast/core';

export const schema = defineSchema({
  person: entity({ account: text(), name: text(), avatar: text({ optional: true }) }, { key: ['account'] }),
  project: entity({ name: text(), archived: flag({ default: false }) }),
  issue: entity(
    {
      number: serial(),
      project: ref('project'),
      title: text({ max: 200 }),
      body: text({ default: '' }),
      status: oneOf(['backlog', 'todo', 'doing', 'done'], { otherwise: 'backlog', onClash: 'last' }),
      assignee: ref('person', { optional: true, onClash: 'last' }),
      labels: setOf(text()),
      votes: counter(),
      rank: rank(),
      priority: integer({ default: 0, onClash: 'last' }),
      closedAt: time({ optional: true, onClash: 'last' }),
    },
    {
      index: [
        ['status', 'rank'],
        ['project', 'status'],
      ],
      search: ['title', 'body'],
      events: (e) => ({
        closed: (at: string) => e.set({ status: 'done', closedAt: at }),
        reopened: () => e.set({ status: 'todo', closedAt: null }),
      }),
      rules: (r) => ({ 'a closed issue has a closing time': r.when(r.is('status', 'done'), r.present('closedAt')) }),
    },
  ),
  comment: entity({ issue: ref('issue', { onDelete: 'delete-too' }), body: text() }, { index: [['issue', 'arrival']] }),
  readMark: entity(
    { person: ref('person'), channel: text(), upTo: integer({ onClash: 'max' }) },
    { key: ['person', 'channel'] },
  ),
  todo: entity({ title: text(), done: flag({ default: false, onClash: 'last' }), rank: rank() }),
  message: entity({ channel: text(), body: text() }, { index: [['channel', 'arrival']] }),
  composer: entity({ body: text({ default: '' }) }, { local: true }),
});
export type AppSchema = typeof schema;
