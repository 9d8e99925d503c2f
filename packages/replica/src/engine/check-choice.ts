import { changeIssues, type Issue, type Json, type JsonObject } from '@holdfast/core';
import { stop } from './fault-error.ts';
import type { ReplicaStore } from './replica-store.ts';

/** What a person may answer: one side, or values by field as the app names them (null: unset). */
export type Choice = 'mine' | 'theirs' | JsonObject;

interface ChosenFor {
  readonly type: string;
  readonly id: string;
}

/** `field` of the entry's own entity, or `type/id.field` of another one of the same batch. */
export function entityOfChosen(name: string, entry: ChosenFor): ChosenFor & { readonly field: string } {
  const [type = entry.type, id = entry.id, field = name] = /^([^/]+)\/(.+)\.([^.]+)$/.exec(name)?.slice(1) ?? [];
  return { type, id, field };
}

/**
 * CM3 for what a person chose: it is held to the schema as any commit is, since it becomes one. Stops with
 * `invalid-change` and an issue for each value that cannot be.
 */
export function checkChoice(store: ReplicaStore, choice: unknown, entry: ChosenFor, batch: readonly ChosenFor[]): void {
  if (choice === 'mine' || choice === 'theirs') return;
  if (typeof choice !== 'object' || choice === null || Array.isArray(choice))
    stop('invalid-change', {
      issues: [
        { path: ['choice'], code: 'wrong-type', message: '"mine", "theirs" or an object of values is expected' },
      ],
    });
  const issues: Issue[] = [];
  for (const [name, value] of Object.entries(choice as JsonObject)) {
    const { type, id, field } = entityOfChosen(name, entry);
    if (!batch.some((one) => one.type === type && one.id === id)) {
      issues.push({ path: [name], code: 'unknown-field', message: 'the entry is about no such entity' });
      continue;
    }
    const model = store.tableOf(type).model;
    if (model === null) continue;
    const said: { set?: Record<string, Json>; unset?: string[] } =
      value === null ? { unset: [field] } : { set: { [field]: value } };
    issues.push(...changeIssues(type, model.data, { do: 'update', entity: type, id, ...said }));
  }
  if (issues.length > 0) stop('invalid-change', { issues });
}
