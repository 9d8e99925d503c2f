import { canonical, type JsonObject } from '@holdfast/core';

/**
 * Writes the envelopes of one operation in their canonical form (JS2) without building objects: keys in order, values
 * escaped as JSON.
 */
export interface EnvelopeOf {
  readonly actionId: string;
  readonly actor: string;
  readonly count: number;
  readonly recordedAt: string;
  readonly replicaId: string;
  readonly requestId: string;
  readonly origin?: { readonly actor: string; readonly recordedAt: string };
}

export interface EventPlace {
  readonly assigned: JsonObject | undefined;
  readonly entityVersion: number;
  readonly index: number;
  readonly version: number;
}

export function envelopeWriter(of: EnvelopeOf): (place: EventPlace) => string {
  const actor = `{"actionId":${JSON.stringify(of.actionId)},"actor":${JSON.stringify(of.actor)}`;
  const origin = of.origin === undefined ? '' : `,"origin":${canonical({ ...of.origin })}`;
  const request = `${origin},"recordedAt":${JSON.stringify(of.recordedAt)},"replicaId":${JSON.stringify(of.replicaId)},"requestId":${JSON.stringify(of.requestId)},"version":`;
  return ({ assigned, entityVersion, index, version }) => {
    const given = assigned === undefined ? '' : `,"assigned":${canonical(assigned)}`;
    return `${actor}${given},"count":${of.count},"entityVersion":${entityVersion},"index":${index}${request}${version}}`;
  };
}
