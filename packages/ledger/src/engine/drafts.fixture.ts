import {
  type Change,
  type EventDraft,
  type Json,
  type Position,
  type PushOperation,
  type PushRequest,
  type RequestReplica,
  uuidv7,
} from '@holdfast/core';

/** Makes requests as a device would: every id new, every byte in order. Counters stand for randomness. */
export class Author {
  readonly replica: { readonly id: string; readonly generation: number; readonly instance: string };
  #count = 0;
  #permit = 0;

  constructor(name = 'a', generation = 1, instance = 'i') {
    this.replica = { id: name, generation, instance };
  }

  id(): string {
    this.#count += 1;
    const seed = `${this.replica.id}/${this.replica.generation}/${this.#count}`;
    let hash = 2166136261;
    const bytes = (length: number): Uint8Array =>
      Uint8Array.from({ length }, (_, at) => {
        hash = Math.imul(hash ^ (seed.charCodeAt(at % seed.length) + at), 16777619) >>> 0;
        return hash >>> 24;
      });
    return uuidv7(1_800_000_000_000 + this.#count, { bytes, unit: () => 0 });
  }

  draft(change: Change, more: Partial<EventDraft> = {}): EventDraft {
    return {
      at: '2026-11-30T00:00:00.000Z',
      base: 0,
      change,
      entityId: 'e1',
      entityType: 'issue',
      id: this.id(),
      salt: '00112233445566778899aabbccddeeff',
      type: `issue.${change.op}d`,
      ...more,
    };
  }

  create(entityId: string, fields: Record<string, Json> = { title: 'one' }): EventDraft {
    return this.draft({ op: 'create', fields }, { entityId });
  }

  set(entityId: string, set: Record<string, Json>, base: number, prior?: string): EventDraft {
    return this.draft({ op: 'update', set }, { entityId, base, ...(prior === undefined ? {} : { prior }) });
  }

  operation(events: readonly EventDraft[], more: Partial<PushOperation> = {}): PushOperation {
    return { requestId: this.id(), actionId: this.id(), events, merge: 'fields', ...more };
  }

  request(position: Position, operations: readonly PushOperation[], more: Partial<RequestReplica> = {}): PushRequest {
    this.#permit += 1;
    return { position, replica: { ...this.replica, permit: this.#permit, ...more }, operations };
  }
}

/** As it comes from the wire: parsed, so that nothing is shared. */
export const wire = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;
