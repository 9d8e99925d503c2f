import { randomBytes } from 'node:crypto';
import { type EventDraft, type Json, LIMITS, uuidv7 } from '@holdfast/core';
import type { RealIssue } from './issues.ts';
import { WORKSPACE, type World } from './world.ts';

const random = { bytes: (length: number) => new Uint8Array(randomBytes(length)), unit: () => Math.random() };
export const newId = (): string => uuidv7(Date.now(), random);

/** A writer of many events that is no replica: it fills a ledger with history faster than any device could. */
export interface Writer {
  create(issues: readonly RealIssue[]): Promise<readonly string[]>;
  /** `count` edits, one event each, going round over the issues. */
  edit(ids: readonly string[], count: number, fieldsOf: (at: number) => Readonly<Record<string, Json>>): Promise<void>;
}

const EVENTS_PER_OPERATION = 100;
const OPERATIONS_PER_PUSH = 4;

interface Refused {
  readonly ok: false;
}

export async function createWriter({ ledger }: Pick<World, 'ledger'>): Promise<Writer> {
  const { engine } = ledger.ledger;
  const ref = { workspace: WORKSPACE, log: 'main' };
  const actor = { account: 'ben', role: 'writer' } as const;
  await engine.createWorkspace(WORKSPACE);
  const replica = { id: randomBytes(16).toString('hex'), generation: 1, instance: randomBytes(16).toString('hex') };
  let permit = 0;
  const versions = new Map<string, number>();
  const parsed = (answer: { readonly ok: true; readonly body: string } | Refused) => {
    if (!answer.ok) throw new Error(`The ledger refused: ${JSON.stringify(answer)}`);
    return JSON.parse(answer.body);
  };
  const page = parsed(await engine.events(actor, ref, { after: 0 }));
  let position = { epoch: page.epoch, version: page.through.version, chain: page.through.chain };
  if (page.head !== position.version) throw new Error('A writer begins at an empty log');

  const draft = (entityId: string, type: string, change: EventDraft['change']): EventDraft => {
    const base = versions.get(entityId) ?? 0;
    versions.set(entityId, base + 1);
    const at = new Date().toISOString();
    return {
      at,
      base,
      change,
      entityId,
      entityType: 'issue',
      id: newId(),
      salt: randomBytes(16).toString('hex'),
      type,
    };
  };
  const push = async (drafts: readonly EventDraft[]): Promise<void> => {
    for (let at = 0; at < drafts.length; at += EVENTS_PER_OPERATION * OPERATIONS_PER_PUSH) {
      const operations = [];
      for (let from = at; from < Math.min(drafts.length, at + EVENTS_PER_OPERATION * OPERATIONS_PER_PUSH); ) {
        const events = drafts.slice(from, from + EVENTS_PER_OPERATION);
        operations.push({ requestId: newId(), actionId: newId(), events, merge: 'fields' });
        from += EVENTS_PER_OPERATION;
      }
      for (const group of byBytes(operations)) {
        permit += 1;
        const body = { position, replica: { ...replica, permit }, operations: group };
        const answer = parsed(await engine.push(actor, ref, JSON.parse(JSON.stringify(body))));
        if (answer.results.some((result: { status: string }) => result.status !== 'accepted'))
          throw new Error(`Not accepted: ${JSON.stringify(answer.results).slice(0, 500)}`);
        position = { epoch: answer.epoch, ...answer.through };
      }
    }
  };
  return {
    create: async (issues) => {
      const ids = issues.map(() => newId());
      await push(
        issues.map((issue, at) =>
          draft(ids[at] as string, 'issue.created', { op: 'create', fields: fieldsOfIssue(issue) }),
        ),
      );
      return ids;
    },
    edit: (ids, count, fieldsOf) =>
      push(
        Array.from({ length: count }, (_, at) =>
          draft(ids[at % ids.length] as string, 'issue.updated', { op: 'update', set: fieldsOf(at) }),
        ),
      ),
  };
}

export const fieldsOfIssue = (issue: RealIssue): Readonly<Record<string, Json>> => ({
  body: issue.body,
  labels: [...new Set(issue.labels)].toSorted(),
  priority: issue.number % 5,
  status: issue.state === 'open' ? 'todo' : 'done',
  title: issue.title,
});

/** Operations that fit one request together. */
function byBytes<T>(operations: readonly T[]): readonly T[][] {
  const groups: T[][] = [];
  let bytes = 0;
  for (const operation of operations) {
    const size = Buffer.byteLength(JSON.stringify(operation));
    if (groups.length === 0 || bytes + size > LIMITS.bodyBytesMax * 0.8) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)?.push(operation);
    bytes += size;
  }
  return groups;
}
