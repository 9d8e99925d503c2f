import { defineSchema, entity, integer, oneOf, setOf, text } from '@holdfast/core';

/** A tracker's issue, in the fields that the bare table has, too. */
export const schema = defineSchema({
  issue: entity({
    title: text(),
    body: text({ default: '' }),
    status: oneOf(['todo', 'doing', 'done'], { otherwise: 'todo', onClash: 'last' }),
    assignee: text({ optional: true, onClash: 'last' }),
    labels: setOf(text()),
    priority: integer({ default: 0, onClash: 'last' }),
  }),
});
export type BenchSchema = typeof schema;
