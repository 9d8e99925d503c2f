import {
  type DecodedOperation,
  type DecodedPush,
  type Digest,
  decodePushRequest,
  type Fault,
  type Json,
  type Outcome,
  ok,
  operationIdentity,
  type PushOperation,
  utf8Length,
} from '@holdfast/core';
import type { Actor, LogRef } from './engine.ts';

/** A push, read and measured before it waits for its group: what needs no log is not done while the log is locked. */
export interface ReadPush {
  readonly actor: Actor;
  readonly ref: LogRef;
  readonly position: DecodedPush['position'];
  readonly replica: DecodedPush['replica'];
  readonly operations: readonly ReadOperation[];
  readonly events: number;
  readonly bytes: number;
  /** It goes on with a request whose permit was taken already: its operations are tried one by one (LG1). */
  readonly continues: boolean;
  /** How many operations came with each (LG5). */
  readonly companions: number;
}

/** One operation, or what its form is refused for (LG6). */
export type ReadOperation =
  | { readonly isRead: true; readonly operation: Readonly<PushOperation>; readonly drafts: DraftTexts }
  | { readonly isRead: false; readonly requestId: string; readonly fault: Fault<'invalid-event' | 'too-large'> };

export interface DraftTexts {
  /** Canonical, in order. */
  readonly texts: readonly string[];
  /** UTF-8 bytes of each. */
  readonly sizes: readonly number[];
  readonly bytes: number;
  /** LG2. */
  readonly identity: string;
}

export function readPush(actor: Actor, ref: LogRef, json: Json, digest: Digest): Outcome<ReadPush, 'malformed'> {
  const decoded = decodePushRequest(json);
  if (!decoded.ok) return decoded;
  const { position, replica, operations } = decoded.value;
  const read = operations.map((operation) => readOperation(operation, digest));
  return ok(pushOf({ actor, ref, position, replica, operations: read, continues: false, companions: read.length - 1 }));
}

export function pushOf(push: Omit<ReadPush, 'events' | 'bytes'>): ReadPush {
  let events = 0;
  let bytes = 0;
  for (const one of push.operations)
    if (one.isRead) {
      events += one.drafts.texts.length;
      bytes += one.drafts.bytes;
    }
  return { ...push, events, bytes };
}

/** The requests that try a failed one's operations one by one. */
export const singly = (push: ReadPush): readonly ReadPush[] =>
  push.operations.map((operation, at) =>
    pushOf({ ...push, operations: [operation], continues: push.continues || at > 0 }),
  );

function readOperation(decoded: DecodedOperation, digest: Digest): ReadOperation {
  if (!decoded.ok) return { isRead: false, requestId: decoded.requestId, fault: decoded.fault };
  return {
    isRead: true,
    operation: decoded.operation,
    drafts: measured(decoded.operation.actionId, decoded.draftTexts, digest),
  };
}

export function measured(actionId: string, texts: readonly string[], digest: Digest): DraftTexts {
  const sizes = texts.map(utf8Length);
  let bytes = 0;
  for (const size of sizes) bytes += size;
  return { texts, sizes, bytes, identity: operationIdentity(actionId, texts, digest) };
}

export const requestIdOf = (one: ReadOperation): string => (one.isRead ? one.operation.requestId : one.requestId);
