/** T11: version 2 of an app whose version 1 is on devices that may not be opened for months. */
import { defineSchema, entity, integer, oneOf, text } from '@holdfast/core';

export const before = defineSchema({
  issue: entity({
    title: text({ max: 200 }),
    status: oneOf(['backlog', 'todo', 'doing', 'done'], { otherwise: 'backlog', onClash: 'last' }),
  }),
});

export const after = defineSchema({
  issue: entity({
    // Renamed in code; the log still says title.
    headline: text({ wire: 'title', max: 200 }),
    // New; old devices keep it untouched.
    estimate: integer({ optional: true }),
    // A new value; an old app shows 'backlog'.
    status: oneOf(['backlog', 'todo', 'doing', 'review', 'done'], { otherwise: 'backlog', onClash: 'last' }),
  }),
});
