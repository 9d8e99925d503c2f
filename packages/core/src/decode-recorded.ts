import {
  anyJson,
  byTag,
  type Check,
  decode,
  exactly,
  listOf,
  oneOfTexts,
  open,
  optional,
  recordOf,
  text,
  whole,
} from './decode-check.ts';
import { id } from './decode-event.ts';
import type { Outcome } from './faults.ts';
import { found, type Json, type JsonObject, problemIn } from './json.ts';
import { LIMITS } from './limits.ts';
import type { RecordedChange, SeenValue } from './recorded-change.ts';

/**
 * Reads what a commit recorded where it comes over a border: a socket, a port, a file. Form only, and total; whether the
 * schema allows it is `changeIssues`.
 */
export const decodeRecordedChanges = (json: unknown): Outcome<readonly RecordedChange[], 'invalid-change'> =>
  decode('invalid-change', recordedChanges, json);

export const decodeSeenValues = (json: unknown): Outcome<readonly SeenValue[], 'invalid-change'> =>
  decode('invalid-change', seenValues, json);

/** JS4: null is no value of a field. */
const value: Check<Json> = (json, depth) =>
  json === null ? found('null is not a value; say unset') : problemIn(json, depth);
const fields: Check<JsonObject> = recordOf(value);
const elements = recordOf(listOf(value));
const places = recordOf(open);
const head = { entity: text, id, verb: optional(text) };

const recordedChange: Check<RecordedChange> = byTag<RecordedChange>('do', {
  create: exactly({ ...head, do: oneOfTexts('create'), fields, place: optional(places) }),
  put: exactly({ ...head, do: oneOfTexts('put'), fields, place: optional(places) }),
  update: exactly({
    ...head,
    do: oneOfTexts('update'),
    set: optional(fields),
    unset: optional(listOf(text, LIMITS.fieldsPerEntityMax)),
    inc: optional(recordOf(whole(Number.MIN_SAFE_INTEGER))),
    add: optional(elements),
    remove: optional(elements),
    place: optional(places),
  }),
  delete: exactly({ ...head, do: oneOfTexts('delete') }),
  restore: exactly({ ...head, do: oneOfTexts('restore'), fields: optional(fields) }),
});
export const recordedChanges = listOf(recordedChange, LIMITS.commandEventsMax);

export const seenValues: Check<readonly SeenValue[]> = listOf(
  // Here null says unset.
  exactly({ entity: text, id, field: text, value: anyJson }),
);
