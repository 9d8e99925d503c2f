import { counter, defineSchema, entity, oneOf, ref, type Schema, setOf, text } from '@holdfast/core';

const issue = {
  title: text(),
  status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
  labels: setOf(text()),
  votes: counter(),
  project: ref('project', { optional: true, onDelete: 'clear' }),
};

/** Small, with every kind of clash: asked about, merged, counted, referred to. */
export const crashSchema: Schema = defineSchema({
  project: entity({ name: text() }),
  issue: entity(issue, { search: ['title'] }),
  comment: entity({ issue: ref('issue'), text: text() }),
});

/** What a later version of the app knows: a type, fields of two types, an index, a field to search in. */
export const widerSchema: Schema = defineSchema({
  project: entity({ name: text(), color: text({ default: 'blue' }) }, { index: [['color']] }),
  issue: entity({ ...issue, body: text({ optional: true }) }, { search: ['title', 'body'] }),
  comment: entity({ issue: ref('issue'), text: text() }),
  team: entity({ name: text() }),
});
