/**
 * What the bare side moves instead of an event: an edit's facts. `body` is as long as a draft of ours, the whole about as
 * long as a stored event.
 */
export interface BareEvent {
  readonly id: string;
  readonly entity: string;
  readonly title: string;
  readonly body: string;
}

/** As long as an id of ours. */
export const bareId = (kind: string, at: number): string => `${kind}-${at}-`.padEnd(36, '0');

export function bareEdit(at: number, entity: string, title: string): BareEvent {
  const id = bareId('event', at);
  const body = JSON.stringify({
    id,
    type: 'issue.updated',
    entityType: 'issue',
    entityId: entity,
    change: { op: 'update', set: { title } },
    base: at,
    at: '2026-11-30T00:00:00.000Z',
    salt: '00112233445566778899aabbccddeeff',
  });
  return { id, entity, title, body };
}
