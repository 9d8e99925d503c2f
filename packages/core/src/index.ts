export * from './canonical.ts';
export * from './chain.ts';
export * from './columns.ts';
export * from './decode-answer.ts';
export * from './decode-definition.ts';
export {
  type DecodedDraft,
  decodeChange,
  decodeEntityState,
  decodeEventDraft,
  decodeStoredEvent,
} from './decode-event.ts';
export * from './decode-recorded.ts';
export * from './decode-request.ts';
export * from './decode-schema.ts';
export * from './difference.ts';
export * from './digest.ts';
export * from './entity-facts.ts';
export * from './events.ts';
export * from './faults.ts';
export { MIDDLE_RANK, presenceOf, shownDefault, shownValue, wireName } from './field-facts.ts';
export * from './fields.ts';
export * from './fingerprint.ts';
export * from './fold.ts';
export * from './ids.ts';
export {
  checkJson,
  isPlainObject,
  isSafeKey,
  type Json,
  type JsonObject,
  type JsonProblem,
  jsonProblem,
} from './json.ts';
export * from './limits.ts';
export * from './machines/obligation.ts';
export * from './machines/operation.ts';
export * from './machines/ownership.ts';
export * from './machines/permit.ts';
export * from './machines/session.ts';
export * from './merge.ts';
export * from './notices.ts';
export * from './order.ts';
export * from './parse.ts';
export type * from './ports.ts';
export * from './protocol.ts';
export * from './rank.ts';
export * from './rebase.ts';
export * from './rebase-facts.ts';
export * from './record.ts';
export { defineType, entityNamed, NAME_TAKEN, type NamedEntityTx } from './record-type.ts';
export * from './recorded-change.ts';
export * from './resolution.ts';
export * from './rules.ts';
export * from './schema.ts';
export * from './schema-check.ts';
export * from './schema-data.ts';
export * from './schema-from.ts';
export { entityProblem, schemaProblem } from './schema-problem.ts';
export * from './schema-snapshot.ts';
export type * from './schema-types.ts';
export * from './sets.ts';
export * from './signature.ts';
export * from './theirs.ts';
export * from './utf8.ts';
export * from './validate.ts';
export * from './validate-change.ts';
export * from './writers.ts';
