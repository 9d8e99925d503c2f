/**
 * Types that flow from a schema (SC3), compiled and never run: what must compile, what must not, and what each type is.
 */
import {
  type CreateOf,
  counter,
  defineSchema,
  entity,
  flag,
  type Id,
  integer,
  json,
  number,
  oneOf,
  type PatchOf,
  type Place,
  type Row,
  rank,
  recordCommit,
  ref,
  serial,
  setOf,
  type Tables,
  type Tx,
  text,
  time,
} from './index.ts';

const schema = defineSchema({
  person: entity({ account: text(), name: text(), avatar: text({ optional: true }) }, { key: ['account'] }),
  project: entity({ name: text(), archived: flag({ default: false }) }),
  issue: entity(
    {
      number: serial(),
      project: ref('project'),
      title: text({ max: 200 }),
      body: text({ default: '' }),
      status: oneOf(['backlog', 'todo', 'doing', 'done'], { otherwise: 'backlog', onClash: 'last' }),
      assignee: ref('person', { optional: true, onClash: 'last' }),
      labels: setOf(text()),
      watchers: setOf(ref('person')),
      votes: counter(),
      rank: rank(),
      priority: integer({ default: 0, onClash: 'last' }),
      weight: number({ optional: true }),
      closedAt: time({ optional: true, onClash: 'last' }),
      layout: json<{ readonly columns: number }>(),
      extra: json<readonly string[]>({ optional: true }),
    },
    {
      index: [
        ['status', 'rank'],
        ['project', 'arrival'],
      ],
      search: ['title', 'body'],
      events: (e) => ({
        closed: (at: string) => e.set({ status: 'done', closedAt: at }),
        reopened: () => e.set({ status: 'todo', closedAt: null }),
      }),
      rules: (r) => ({ 'a closed issue has a closing time': r.when(r.is('status', 'done'), r.present('closedAt')) }),
    },
  ),
});
type S = typeof schema;
type Fields = S['issue']['fields'];

// ── what each type is ───────────────────────────────────────────────────────────────────────────────────────────────

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
const is = <T extends true>(): T => true as T;

type Issue = Row<S, 'issue'>;
is<Same<Issue['id'], Id<'issue'>>>();
is<Same<Issue['number'], number | null>>();
is<Same<Issue['project'], Id<'project'>>>();
is<Same<Issue['title'], string>>();
is<Same<Issue['body'], string>>();
is<Same<Issue['status'], 'backlog' | 'todo' | 'doing' | 'done'>>();
is<Same<Issue['assignee'], Id<'person'> | null>>();
is<Same<Issue['labels'], readonly string[]>>();
is<Same<Issue['watchers'], readonly Id<'person'>[]>>();
is<Same<Issue['votes'], number>>();
is<Same<Issue['rank'], string>>();
is<Same<Issue['priority'], number>>();
is<Same<Issue['weight'], number | null>>();
is<Same<Issue['closedAt'], string | null>>();
is<Same<Issue['layout'], { readonly columns: number }>>();
is<Same<Issue['extra'], readonly string[] | null>>();
is<Same<Issue['arrival'], number>>();
is<Same<Issue['sync'], 'synced' | 'pending' | 'attention'>>();
is<Same<Row<S, 'project'>['archived'], boolean>>();
is<Same<keyof Tables<S>, 'person' | 'project' | 'issue'>>();
is<Same<Tables<S>['issue'], Issue>>();

is<Same<Flat<CreateOf<'project', S['project']['fields']>>, { name: string; archived?: boolean; id?: Id<'project'> }>>();
is<
  Same<
    Flat<CreateOf<'person', S['person']['fields']>>,
    { account: string; name: string; avatar?: string | null; id?: Id<'person'> }
  >
>();
type Create = CreateOf<'issue', Fields>;
is<Same<Exclude<Create['rank'], undefined>, Place>>();
is<Same<Exclude<Create['closedAt'], undefined>, string | Date | null>>();
is<Same<Extract<keyof Create, 'number'>, never>>();

type Patch = PatchOf<Fields>;
is<Same<Extract<keyof Patch, 'number'>, never>>();
is<Same<Exclude<Patch['votes'], undefined>, { readonly by: number }>>();
is<Same<Exclude<Patch['title'], undefined>, string>>();
is<Same<Exclude<Patch['assignee'], undefined>, Id<'person'> | null>>();
is<
  Same<
    Exclude<Patch['labels'], undefined>,
    readonly string[] | { readonly add?: readonly string[]; readonly remove?: readonly string[] }
  >
>();

// ── what compiles and what does not ─────────────────────────────────────────────────────────────────────────────────

declare const issue: Issue;
declare const personId: Row<S, 'person'>['id'];
declare const loose: string;

export const program = (tx: Tx<S>): void => {
  const made: Id<'issue'> = tx.issue.create({ project: loose, title: 'A', status: 'todo', layout: { columns: 2 } });
  tx.issue.closed(issue, '2026-11-30T00:00:00.000Z');
  tx.issue.closed(loose, '2026-11-30T00:00:00.000Z');
  tx.issue.reopened(made);
  tx.issue.update(issue, { votes: { by: 1 }, labels: { add: ['bug'] }, closedAt: null, assignee: personId });
  tx.issue.update(issue, { labels: ['bug'], closedAt: new Date(0), rank: { after: issue, before: null } });
  tx.issue.update({ id: issue.id, title: issue.title }, { title: 'B' });
  tx.issue.delete(issue);
  tx.issue.delete({ id: issue.id });
  tx.issue.restore(issue.id);
  tx.person.put({ account: 'ana', name: 'Ana', avatar: null });

  // @ts-expect-error a status that does not exist
  tx.issue.update(issue.id, { status: 'dnoe' });
  // @ts-expect-error a comment id where a person id is wanted
  tx.issue.update(issue.id, { assignee: issue.id });
  // @ts-expect-error another entity's id where an element of a set is wanted
  tx.issue.update(issue.id, { watchers: [issue.id] });
  // @ts-expect-error a counter is not set
  tx.issue.update(issue.id, { votes: 3 });
  // @ts-expect-error assigned by the ledger
  tx.issue.update(issue.id, { number: 3 });
  // @ts-expect-error required field missing
  tx.issue.create({ title: 'no project' });
  // @ts-expect-error assigned by the ledger
  tx.issue.create({ project: loose, title: 'A', status: 'todo', layout: { columns: 2 }, number: 1 });
  // @ts-expect-error title is not optional
  tx.issue.update(issue, { title: null });
  // @ts-expect-error a default is not unset
  tx.project.create({ name: 'P', archived: null });
  // @ts-expect-error no such field
  tx.issue.update(issue.id, { titel: 'A' });
  // @ts-expect-error no such entity
  tx.isue.delete(issue.id);
  // @ts-expect-error another entity's row
  tx.project.delete(issue);
  // @ts-expect-error a row without its id
  tx.issue.update({ title: 'A' }, { title: 'B' });
  // @ts-expect-error the verb takes a time
  tx.issue.closed(issue);
  // @ts-expect-error the verb's time is text
  tx.issue.closed(issue, 3);
  // @ts-expect-error no such verb
  tx.issue.finished(issue);
  // @ts-expect-error a rank is a place, not a key
  tx.issue.update(issue, { rank: 'U' });
  // @ts-expect-error a place names both neighbours
  tx.issue.update(issue, { rank: { after: issue } });
  // @ts-expect-error the json value has another shape
  tx.issue.update(issue, { layout: { columns: 'two' } });
};

// The result's type is the callback's.
const recorded = recordCommit(schema, { format: 1, entities: {} }, { newId: () => '', keyedId: () => '' }, (tx) =>
  tx.project.create({ name: 'P' }),
);
if (recorded.ok) is<Same<typeof recorded.value.result, Id<'project'>>>();

// ── schemas that cannot be ──────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error a ref to an entity that is not there
defineSchema({ a: entity({ b: ref('nobody'), t: text() }) });
// @ts-expect-error `otherwise` is one of the values
oneOf(['a', 'b'], { otherwise: 'c' });
// @ts-expect-error `otherwise` is said
oneOf(['a', 'b'], {});
// @ts-expect-error no such way to clash
text({ onClash: 'first' });
// @ts-expect-error a default is of the field's type
integer({ default: 'none' });
// @ts-expect-error a key names fields
entity({ a: text() }, { key: ['b'] });
// @ts-expect-error an index names columns
entity({ a: text() }, { index: [['b']] });
// @ts-expect-error a required field is always present
entity({ a: text() }, { rules: (r) => ({ 'a is there': r.present('a') }) });
// @ts-expect-error a rule compares with a value that the field can have
entity({ a: oneOf(['x', 'y'], { otherwise: 'x' }) }, { rules: (r) => ({ 'a is z': r.is('a', 'z') }) });
// @ts-expect-error a verb sets fields that are there
entity({ a: text() }, { events: (e) => ({ done: () => e.set({ b: 'x' }) }) });
defineSchema({ a: entity({ t: text() }) }, { onClash: 'last' });
