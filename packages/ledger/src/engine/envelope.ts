import { canonical, type JsonObject } from '@holdfast/core';
import type { OperationOutline } from './store-port.ts';

export type EnvelopeOf = Pick<
  OperationOutline,
  'firstVersion' | 'count' | 'requestId' | 'actionId' | 'replicaId' | 'actor' | 'recordedAt' | 'origin'
>;

/** What an envelope does not share with its operation. `assigned` is canonical. */
export interface EventPlace {
  readonly version: number;
  readonly entityVersion: number;
  readonly assigned: string | null;
}

/**
 * Writes the envelopes of one operation in their canonical form (JS2): keys in order, values escaped as JSON. The same at
 * acceptance, where the chain is over these bytes, and whenever an event is read again.
 */
export function envelopeWriter(of: EnvelopeOf): (place: EventPlace) => string {
  const head = `{"actionId":${JSON.stringify(of.actionId)},"actor":${JSON.stringify(of.actor)}`;
  const origin = of.origin === null ? '' : `,"origin":${of.origin}`;
  const tail = `${origin},"recordedAt":${JSON.stringify(of.recordedAt)},"replicaId":${JSON.stringify(of.replicaId)},"requestId":${JSON.stringify(of.requestId)},"version":`;
  return ({ version, entityVersion, assigned }) => {
    const given = assigned === null ? '' : `,"assigned":${assigned}`;
    return `${head}${given},"count":${of.count},"entityVersion":${entityVersion},"index":${version - of.firstVersion}${tail}${version}}`;
  };
}

export const assignedText = (assigned: JsonObject | undefined): string | null =>
  assigned === undefined ? null : canonical(assigned);
