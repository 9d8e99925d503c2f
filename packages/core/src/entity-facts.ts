import type { Change, StoredEvent } from './events.ts';
import type { EntityFields } from './fields.ts';
import type { JsonObject } from './json.ts';

/** What a replica knows of an entity at its head, when it judges own work on it. */
export interface EntityFacts {
  /** How many events it had, also where it is deleted; 0 for none. */
  readonly version: number;
  /** Its confirmed fields. */
  readonly fields: EntityFields;
  /** Its fields before its newest deletion, where it is absent now. Without them an edit cannot be kept, and is parked. */
  readonly lastFields?: JsonObject | undefined;
  /**
   * Its confirmed events after the lowest base of the work that is judged, in order of entity version. Where they are not
   * here, since the state came by bootstrap or repair: none if the author saw that state, else `differenceAsChanges` from
   * what the author saw, dressed as events in nobody's name: `actor` and `recordedAt` are empty.
   */
  readonly events: readonly ConfirmedEvent[];
  /** What the work is put on, where that is more than the confirmed fields: earlier pending work, a resolution. */
  readonly onto?: { readonly fields: EntityFields } | undefined;
}

/** A `StoredEvent` is one; the change of an erased event is null. */
export interface ConfirmedEvent
  extends Pick<StoredEvent, 'id' | 'prior' | 'base' | 'entityVersion' | 'actor' | 'recordedAt' | 'meta'> {
  readonly change: Change | null;
}
