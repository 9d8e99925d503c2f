import type { Schema, StoredEvent } from '@holdfast/core';
import type { World, WorldDevice } from '@holdfast/replica/testing';

/** A commit that resolved: what an app may rely on for ever. */
export interface Commit {
  /** Its action id. */
  readonly id: string;
  readonly device: string;
}

/** Where every commit ended (I13): each in one of these places. Action ids. */
export interface Account {
  /** Each of its events stands in the log once. */
  readonly inLog: readonly string[];
  /** Others had done all of it, and nothing was left to send. */
  readonly done: readonly string[];
  /** Decided against by the schema's rules; its author's desk tells it. */
  readonly told: readonly string[];
  /** Waits on its author's desk. */
  readonly asked: readonly string[];
  /** Waits for a commit that is `asked`. */
  readonly held: readonly string[];
  /** In no place, or in two: what must be empty. */
  readonly wrong: readonly string[];
}

export async function readEvents<S extends Schema>(world: World<S>): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (;;) {
    const answered = await world.ledger.current.engine.events(
      { account: 'world', role: 'reader' },
      { workspace: 'world', log: 'main' },
      { after: events.length },
    );
    if (!answered.ok) throw new Error(`The ledger refused to show its log: ${answered.refused.refusal.code}`);
    const page = JSON.parse(answered.body) as { readonly events: readonly StoredEvent[]; readonly more: boolean };
    events.push(...page.events);
    if (!page.more) return events;
  }
}

/** Of a world at rest. `commits` have one event each. */
export async function accountFor<S extends Schema>(
  devices: readonly WorldDevice<S>[],
  commits: readonly Commit[],
  events: readonly StoredEvent[],
): Promise<Account> {
  const times = new Map<string, number>();
  for (const { actionId } of events) times.set(actionId, (times.get(actionId) ?? 0) + 1);
  const account = { inLog: [], done: [], told: [], asked: [], held: [], wrong: [] } as Record<keyof Account, string[]>;
  for (const device of devices) {
    const listed = await device.replica.desk.list();
    // What needs an answer is listed first, and is what counts of a write.
    const desk = new Map(listed.toReversed().map((item) => [item.write, item]));
    const held: string[] = [];
    for (const { id } of commits.filter((commit) => commit.device === device.name)) {
      const state = (await device.replica.write(id))?.state;
      const needs = desk.get(id)?.needs;
      const count = times.get(id) ?? 0;
      if (count === 1 && state === 'ordered' && needs !== 'answer') account.inLog.push(id);
      else if (count > 0) account.wrong.push(`${id} is ${state} and stands in the log ${count} times`);
      else if (state === 'ordered') account.done.push(id);
      else if (state === 'discarded' && needs === 'nothing') account.told.push(id);
      else if (state === 'needs-attention' && needs === 'answer') account.asked.push(id);
      // Not in local state, not sent, and not asked about: only its predecessor is.
      else if (state === 'needs-attention' && needs === undefined) held.push(id);
      else account.wrong.push(`${id} is ${state}, and on the desk ${needs}`);
    }
    const behind = listed.reduce((sum, item) => sum + item.held, 0);
    if (behind !== held.length) account.wrong.push(`${device.name} holds ${held.length}, and its desk says ${behind}`);
    account.held.push(...held);
  }
  return account;
}

/** Events that stand beside what somebody else did to the same entity without their author knowing. */
export function mergedOver(events: readonly StoredEvent[]): readonly StoredEvent[] {
  const authors = new Map<string, string[]>();
  return events.filter(({ entityType, entityId, base, actor }) => {
    const key = `${entityType} ${entityId}`;
    const before = authors.get(key) ?? [];
    authors.set(key, [...before, actor]);
    return before.slice(base).some((other) => other !== actor);
  });
}
