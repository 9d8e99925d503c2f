import type { EventDraft, StoredEvent } from '@holdfast/core';
import type { World } from './world.ts';

interface LoggedAction {
  seen: number;
  readonly count: number;
  readonly requests: Set<string>;
}

export interface WholeLog {
  readonly events: readonly StoredEvent[];
  readonly actions: Map<string, LoggedAction>;
  /** What events did, `delete <entity>` and `<entity> <field> <value>`. */
  readonly said: Set<string>;
  readonly head: number;
  readonly dense: boolean;
}

/** A whole log of the ledger, by action and by effect. */
export async function readLog(world: Pick<World, 'ledger'>, log: string): Promise<WholeLog> {
  const actions = new Map<string, LoggedAction>();
  const said = new Set<string>();
  const all: StoredEvent[] = [];
  let after = 0;
  let dense = true;
  for (;;) {
    const answered = await world.ledger.current?.engine.events(
      { account: 'check', role: 'reader' },
      { workspace: 'world', log },
      { after },
    );
    if (answered === undefined || !answered.ok) return { events: all, actions, said, head: after, dense: false };
    const page = JSON.parse(answered.body) as {
      events: StoredEvent[];
      through: { version: number };
      more: boolean;
    };
    for (const event of page.events) {
      if (event.version !== after + 1) dense = false;
      after = event.version;
      all.push(event);
      const action = actions.get(event.actionId) ?? { seen: 0, count: event.count, requests: new Set<string>() };
      action.seen += 1;
      action.requests.add(event.requestId);
      actions.set(event.actionId, action);
      for (const effect of effectsOf(event)) said.add(effect);
    }
    if (!page.more) return { events: all, actions, said, head: after, dense };
  }
}

/** What an event makes true, where doing it twice is doing it once. */
function effectsOf({ entityType, entityId, change }: EventDraft): readonly string[] {
  const entity = `${entityType} ${entityId}`;
  if (change.op === 'delete') return [`delete ${entity}`];
  if (change.op === 'create' || change.op === 'restore') return Object.entries(change.fields).map(effectOn(entity));
  const unset = (change.op === 'update' ? (change.unset ?? []) : []).map((field) => [field, null] as const);
  return [...Object.entries(change.set ?? {}), ...unset].map(effectOn(entity));
}

const effectOn =
  (entity: string) =>
  ([field, value]: readonly [string, unknown]): string =>
    `${entity} ${field} ${JSON.stringify(value)}`;

/** An action of which theirs did all is not sent: then all that it said stands in the log, by other hands. */
export const isSaidByOthers = (drafts: readonly EventDraft[] | undefined, said: ReadonlySet<string>): boolean =>
  drafts !== undefined &&
  drafts.length > 0 &&
  drafts.every((draft) => {
    const effects = effectsOf(draft);
    const { change } = draft;
    if (change.op === 'update' && (change.inc ?? change.add ?? change.remove) !== undefined) return false;
    return effects.length > 0 && effects.every((one) => said.has(one));
  });
