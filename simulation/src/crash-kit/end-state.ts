import { canonical, type EventDraft, type Json, type JsonObject, type Schema } from '@holdfast/core';
import { checkQuiet } from '../checkers.ts';
import type { SimulatedDevice } from '../device.ts';
import type { Examined } from '../world.ts';
import type { Bench } from './bench.ts';

/** What a scenario came to, without what may differ from run to run: ids that the engine makes, instants, positions. */
export interface EndState {
  /** Each event of the log once, by what it did, sorted. */
  readonly log: readonly string[];
  readonly rows: Readonly<Record<string, readonly JsonObject[]>>;
  readonly desk: readonly JsonObject[];
  readonly counts: JsonObject;
  readonly undo: JsonObject;
}

export async function endStateOf(bench: Bench): Promise<EndState> {
  const { ana } = bench;
  const engine = ana.engine as NonNullable<typeof ana.engine>;
  const { state } = engine;
  const { unsent, sending, waiting, held, parked, lost, attention } = state.counts();
  return {
    log: await eventsOf(bench),
    rows: rowsOf(ana),
    desk: state
      .desk()
      .map(({ kind, needs, entity, fields, held: below, label = null }) => ({
        kind,
        needs,
        entity,
        held: below,
        label,
        fields: fields.map(({ field, mine = null, theirs = null, by }) => ({ field, mine, theirs, by })),
      }))
      .sort(byText) as unknown as JsonObject[],
    counts: { unsent, sending, waiting, held, parked, lost, attention },
    undo: state.undoState('main') as unknown as JsonObject,
  };
}

/** All checks of files and of conservation, at rest. Empty: every promise is kept. */
export async function brokenPromises(bench: Bench): Promise<string[]> {
  const { ledger, devices, time } = bench;
  const world: Examined = {
    ledger,
    devices: devices as unknown as Examined['devices'],
    time,
    lasting: null,
    faults: new Set(),
    logs: ['main'],
  };
  const found = await checkQuiet(world, { isTampered: true });
  return found.map(({ invariant, device, what }) => `${invariant} ${device ?? 'ledger'}: ${what}`);
}

async function eventsOf({ ledger }: Bench): Promise<string[]> {
  const found: string[] = [];
  for (let after = 0; ; ) {
    const answered = await ledger.current?.engine.events(
      { account: 'check', role: 'reader' },
      { workspace: 'world', log: 'main' },
      { after },
    );
    if (answered?.ok !== true) return found.sort();
    const page = JSON.parse(answered.body) as {
      readonly events: readonly (EventDraft & { readonly actor: string })[];
      readonly through: { readonly version: number };
      readonly more: boolean;
    };
    for (const { actor, entityType, entityId, change } of page.events)
      found.push(`${actor} ${entityType}/${entityId} ${canonical(change as unknown as Json)}`);
    after = page.through.version;
    if (!page.more) return found.sort();
  }
}

const UNLIKE = /^(createdAt|updatedAt|created_at|updated_at)$/;

function rowsOf({ engine }: SimulatedDevice<Schema>): Record<string, JsonObject[]> {
  const rows: Record<string, JsonObject[]> = {};
  for (const [type, { model }] of engine?.state.store.tables ?? []) {
    if (model === null || model.isHidden === true) continue;
    rows[type] = (engine?.database.prepare(`SELECT * FROM "${type}" ORDER BY id`).all() ?? []).map(
      (row) => Object.fromEntries(Object.entries(row).filter(([name]) => !UNLIKE.test(name))) as JsonObject,
    );
  }
  return rows;
}

const byText = (a: object, b: object): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
