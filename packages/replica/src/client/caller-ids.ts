import { type Json, keyedId, type Platform, type RecorderIds, uuidv7 } from '@holdfast/core';

/** Ids that a caller makes himself, before he asks (CM5). */
export interface CallerIds extends RecorderIds {
  /** Of an action. */
  newId(): string;
}

export const callerIds = ({ clock, random, digest }: Platform): CallerIds => ({
  newId: () => uuidv7(clock.now(), random),
  keyedId: (entity: string, values: readonly Json[]) => keyedId(entity, values, digest),
});
