import { type EntitiesPage, type EntityState, type JsonObject, sameValue } from '@holdfast/core';
import type { TestLedger } from '@holdfast/ledger/testing';
import { examine } from '../engine/inspect.ts';
import { LocalEntities } from '../engine/local.ts';
import type { OpenedState } from '../engine/state.ts';
import type { WorldDifference } from './world-error.ts';

/** A log as the ledger has it, verified from its first event on. */
export interface LedgerLog {
  readonly log: string;
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  /** By type and id. Read only where something differs. */
  readonly entities: () => Promise<ReadonlyMap<string, Held>>;
  readonly problems: readonly WorldDifference[];
}

interface Held {
  readonly type: string;
  readonly id: string;
  readonly version: number;
  readonly fields: JsonObject;
}

const keyOf = (type: string, id: string): string => `${type}/${id}`;

/** Null: the ledger has no such log. */
export async function readLedgerLog(ledger: TestLedger, workspace: string, log: string): Promise<LedgerLog | null> {
  const report = await ledger.engine.verify({ workspace, log });
  if (report === null) return null;
  const { events: head, chain, signature } = report;
  const problems = report.problems.map(
    ({ what, version, entity, expected, found }): WorldDifference => ({
      device: 'ledger',
      versus: 'its own events',
      log,
      what: 'damage',
      ...(entity === undefined ? {} : { entity }),
      line: `ledger: log ${log}${version === undefined ? '' : `, version ${version}`}: ${what} should be ${expected}, is ${found}`,
    }),
  );
  let entities: Promise<ReadonlyMap<string, Held>> | null = null;
  return {
    log,
    head,
    chain,
    signature,
    problems,
    entities: () => {
      entities ??= readEntities(ledger, workspace, log);
      return entities;
    },
  };
}

async function readEntities(ledger: TestLedger, workspace: string, log: string): Promise<ReadonlyMap<string, Held>> {
  const held = new Map<string, Held>();
  for (let cursor: string | undefined; ; ) {
    const answered = await ledger.engine.entities(
      { account: 'world', role: 'reader' },
      { workspace, log },
      cursor === undefined ? {} : { cursor },
    );
    if (!answered.ok) throw new Error(`The ledger refused to show log ${log}: ${answered.refused.refusal.code}`);
    const page = JSON.parse(answered.body) as EntitiesPage;
    for (const one of page.entities) held.set(keyOf(one.type, one.id), one satisfies EntityState);
    if (page.next === undefined) return held;
    cursor = page.next;
  }
}

/** In what a device differs from the ledger in one log, and its file from itself. Empty: not in one bit. */
export async function differencesOf(
  device: string,
  state: OpenedState,
  log: string,
  ledger: LedgerLog | null,
): Promise<readonly WorldDifference[]> {
  const at = (rest: Pick<WorldDifference, 'what' | 'line'> & Partial<WorldDifference>): WorldDifference => ({
    device,
    versus: 'ledger',
    log,
    ...rest,
    line: `${device}: ${rest.line}`,
  });
  const mine = state.log(log);
  if (mine === undefined) return [];
  if (ledger === null)
    return mine.head === 0
      ? []
      : [at({ what: 'head', line: `head ${mine.head} of log ${log}, which the ledger lacks` })];
  const found: WorldDifference[] = [];
  const unsent = state.flowing(log);
  if (unsent > 0)
    found.push(at({ what: 'unsent', here: unsent, line: `${unsent} batches of log ${log} are not confirmed yet` }));
  if (mine.head !== ledger.head)
    found.push(
      at({
        what: 'head',
        here: mine.head,
        there: ledger.head,
        line: `head ${mine.head} of ${ledger.head} in log ${log}`,
      }),
    );
  else if (mine.chain !== ledger.chain)
    found.push(
      at({
        what: 'chain',
        here: mine.chain,
        there: ledger.chain,
        line: `chain ${short(mine.chain)} of log ${log}, the ledger's is ${short(ledger.chain)}`,
      }),
    );
  if (mine.signature !== ledger.signature) {
    found.push(
      at({
        what: 'signature',
        here: mine.signature,
        there: ledger.signature,
        line: `signature ${short(mine.signature)} of log ${log}, the ledger's is ${short(ledger.signature)}`,
      }),
    );
    found.push(...entityDifferences(confirmedEntities(state, log), await ledger.entities(), at));
  }
  for (const { check, what, log: of } of examine(state.store).findings)
    if (of === undefined || of === log)
      found.push({ ...at({ what: 'damage', line: `${check}: ${what}` }), versus: 'its own events' });
  return found;
}

/** What the ledger has confirmed to this device, without what still waits. */
function confirmedEntities({ store }: OpenedState, log: string): ReadonlyMap<string, Held> {
  const { database } = store;
  const entities = new LocalEntities(store);
  const held = new Map<string, Held>();
  const look = (type: string, id: string): void => {
    const { confirmed } = entities.ofLog({ log, type, id });
    if (confirmed.state === undefined) return;
    const { version, fields } = confirmed.state;
    held.set(keyOf(type, id), { type, id, version, fields });
  };
  const aside = database.prepare('SELECT DISTINCT type FROM main.hf_entity WHERE log = ?').all(log);
  const types = new Set([...store.tables.keys(), ...aside.map((row) => row['type'] as string)]);
  for (const type of types) for (const { id } of [...store.logTableOf(type).all(log)]) look(type, id);
  for (const row of database.prepare('SELECT type, id FROM main.hf_base WHERE log = ?').all(log))
    look(row['type'] as string, row['id'] as string);
  return held;
}

function entityDifferences(
  here: ReadonlyMap<string, Held>,
  there: ReadonlyMap<string, Held>,
  at: (rest: Pick<WorldDifference, 'what' | 'line'> & Partial<WorldDifference>) => WorldDifference,
): WorldDifference[] {
  const found: WorldDifference[] = [];
  for (const key of new Set([...here.keys(), ...there.keys()])) {
    const [mine, theirs] = [here.get(key), there.get(key)];
    const { type, id } = (mine ?? theirs) as Held;
    const entity = { type, id };
    if (mine === undefined || theirs === undefined) {
      const line =
        mine === undefined ? `${key} is not here, and is at the ledger` : `${key} is here, and not at the ledger`;
      found.push(at({ what: 'entity', entity, ...sides(mine?.fields, theirs?.fields), line }));
      continue;
    }
    if (mine.version !== theirs.version)
      found.push(
        at({
          what: 'entity',
          entity,
          here: mine.version,
          there: theirs.version,
          line: `${key} is at version ${mine.version}, at the ledger at ${theirs.version}`,
        }),
      );
    for (const field of new Set([...Object.keys(mine.fields), ...Object.keys(theirs.fields)])) {
      const [own, other] = [mine.fields[field], theirs.fields[field]];
      if (own !== undefined && other !== undefined && sameValue(own, other)) continue;
      const line = `${key} ${field} is ${shown(own)}, at the ledger ${shown(other)}`;
      found.push(at({ what: 'field', entity, field, ...sides(own, other), line }));
    }
  }
  return found;
}

const sides = (here: unknown, there: unknown) => ({
  ...(here === undefined ? {} : { here }),
  ...(there === undefined ? {} : { there }),
});
const short = (hex: string): string => (hex === '' ? '(none)' : hex.slice(0, 8));
const shown = (value: unknown): string => (value === undefined ? 'not set' : JSON.stringify(value).slice(0, 80));
