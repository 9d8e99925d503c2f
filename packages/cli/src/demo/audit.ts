import type { Inspection } from '@holdfast/replica/inspect';

/** What is true of a finished demonstration, counted from the ledger's log and the two files, not from what was said. */
export interface Audit {
  readonly events: number;
  readonly operations: number;
  /** Events that hold beside what somebody else did to the same record without their author knowing. */
  readonly merged: number;
  readonly lost: number;
  readonly doubled: number;
}

interface EventsPage {
  readonly events: readonly {
    readonly version: number;
    readonly actionId: string;
    readonly actor: string;
    readonly entityType: string;
    readonly entityId: string;
    readonly entityVersion: number;
    readonly base: number;
    readonly index: number;
    readonly count: number;
  }[];
  readonly through: { readonly version: number };
  readonly more: boolean;
}

/** Reads the whole log over plain HTTP, and compares it with what the devices committed. */
export async function auditLog(
  ledger: string,
  token: string,
  committed: ReadonlySet<string>,
  closed: ReadonlySet<string>,
): Promise<Audit> {
  const eventsByAction = new Map<string, { seen: number; count: number }>();
  let after = 0;
  let events = 0;
  let merged = 0;
  const authors = new Map<string, string[]>();
  for (;;) {
    const response = await fetch(`${ledger}/v1/workspaces/demo/logs/main/events?after=${after}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    if (!response.ok) throw new Error(`The ledger answered ${response.status}.`);
    const page = (await response.json()) as EventsPage;
    for (const event of page.events) {
      events += 1;
      const key = `${event.entityType}/${event.entityId}`;
      const before = authors.get(key) ?? [];
      if (before.slice(event.base).some((actor) => actor !== event.actor)) merged += 1;
      authors.set(key, [...before, event.actor]);
      const action = eventsByAction.get(event.actionId) ?? { seen: 0, count: event.count };
      action.seen += 1;
      eventsByAction.set(event.actionId, action);
    }
    after = page.through.version;
    if (!page.more) break;
  }
  const lost = [...committed].filter((action) => !eventsByAction.has(action) && !closed.has(action)).length;
  const doubled = [...eventsByAction.values()].filter(({ seen, count }) => seen !== count).length;
  return { events, operations: eventsByAction.size, merged, lost, doubled };
}

export interface FileFacts {
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  readonly findings: number;
  readonly unsent: number;
  readonly obligationsOpened: number;
  readonly obligationsOpen: number;
}

export function factsOf(inspection: Inspection): FileFacts {
  const log = inspection.logs().find((one) => one.log === 'main');
  const { opened, open } = inspection.obligations();
  return {
    head: log?.head ?? 0,
    chain: log?.chain ?? '',
    signature: log?.signature ?? '',
    findings: inspection.examine().findings.length,
    unsent: inspection.counts().unsent,
    obligationsOpened: opened,
    obligationsOpen: open,
  };
}
