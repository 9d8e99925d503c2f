import type { Replica } from '@holdfast/replica';
import type { AppSchema } from '../docs/tasks/schema.ts';

/**
 * The hooks of docs/tasks/react over a real replica, and as much of React as the tasks use: elements are plain objects, a
 * component is called, hooks are told apart by the order of their calls. It keeps of the real binding what a task can see:
 * `rows` and `state` of live queries, suspending, `useUndo`, `useStatus`, and of a draft all but its survival.
 */
export interface Element {
  readonly type: unknown;
  readonly props: Readonly<Record<string, any>>;
}

const stage: {
  replica: Replica<AppSchema> | null;
  cells: any[];
  at: number;
} = { replica: null, cells: [], at: 0 };

/** What is kept from one rendering to the next, in the order of the calls. */
function cell<T>(make: () => T): T {
  const { cells, at } = stage;
  stage.at += 1;
  if (at === cells.length) cells.push(make());
  return cells[at] as T;
}
const replicaNow = (): Replica<AppSchema> => stage.replica as Replica<AppSchema>;

// ── react ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export const Fragment = 'fragment';
export const jsx = (type: unknown, props: Element['props']): Element => ({ type, props });
export { jsx as jsxDEV, jsx as jsxs };
export const Suspense = ({ children }: { children: unknown }) => children;
export function useState<T>(first: T): [T, (next: T) => void] {
  const state = cell(() => ({ value: first }));
  return [
    state.value,
    (next) => {
      state.value = next;
    },
  ];
}

// ── hooks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type AnyQuery = Parameters<Replica<AppSchema>['live']>[0];

class Suspended {}

export const bindReact = () => ({
  ReplicaProvider: ({ children }: { children: unknown }) => children,
  useReplica: replicaNow,
  useLiveQuery: (query: AnyQuery) => cell(() => watched(query)).live.current,
  useSuspenseLiveQuery: (query: AnyQuery) => {
    const { live } = cell(() => watched(query));
    if (live.current.state === 'loading') throw new Suspended();
    return live.current.rows;
  },
  useEntity: () => undefined,
  useCommit: () => replicaNow().commit.bind(replicaNow()),
  useStatus: (select: (status: unknown) => unknown = (status) => status) => select(replicaNow().status.current),
  useUndo: () => {
    const { can, canRedo, label, redoLabel } = replicaNow().undo;
    const { undo } = replicaNow();
    return { can, canRedo, label, redoLabel, undo: () => undo.undo(), redo: () => undo.redo() };
  },
  useDesk: () => ({ items: [], resolve: replicaNow().desk.resolve }),
  useDraft: (entity: 'issue', id: string) => {
    const { live } = cell(() => watched((db) => db.selectFrom(entity).selectAll().where('id', '=', id)));
    const draft = cell((): { seen: any; set: Record<string, unknown> } => ({ seen: null, set: {} }));
    const row = live.current.rows[0] as Record<string, unknown> | undefined;
    if (row === undefined) throw new Suspended();
    draft.seen ??= row;
    const changed = Object.keys(draft.set);
    const theirs = changed.filter((field) => row[field] !== draft.seen[field]);
    const discard = () => {
      draft.seen = null;
      draft.set = {};
    };
    return {
      values: { ...row, ...draft.set },
      changed,
      theirs: Object.fromEntries(theirs.map((field) => [field, row[field]])),
      problems: {},
      set: (patch: object) => Object.assign(draft.set, patch),
      discard,
      save: async (o?: object) => {
        await replicaNow().commit((tx) => tx[entity].update(draft.seen, draft.set), o);
        discard();
      },
    };
  },
});

function watched(query: AnyQuery) {
  const live = replicaNow().live(query);
  const stop = live.subscribe(() => undefined);
  return { live, stop };
}

// ── rendering ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** One mounted component. Everything that a person does is done to what was shown last. */
export interface Screen {
  /** Renders until no query is loading and everything committed is shown. */
  show(): Promise<void>;
  /** All elements of a type, by tag or component, in document order. */
  all(type: unknown): readonly Element['props'][];
  readonly text: string;
  close(): void;
}

export function mount(replica: Replica<AppSchema>, root: () => unknown): Screen {
  const cells: any[] = [];
  let shown: readonly (Element | string)[] = [];
  const render = (): boolean => {
    Object.assign(stage, { replica, cells, at: 0 });
    try {
      shown = [...flat(root())];
      return cells.every((one) => one.live === undefined || one.live.current.state !== 'loading');
    } catch (cause) {
      if (cause instanceof Suspended) return false;
      throw cause;
    }
  };
  return {
    show: async () => {
      // A commit that shows nothing new tells when everything before it is on screen.
      await replica.commit((tx) => tx.composer.create({})).shown();
      for (let round = 0; !render(); round += 1) {
        if (round > 100) throw new Error('It never finishes loading.');
        await replica.query((db) => db.selectFrom('todo').select('id').limit(1));
      }
    },
    all: (type) => shown.flatMap((one) => (typeof one !== 'string' && one.type === type ? [one.props] : [])),
    get text() {
      return shown.filter((one) => typeof one === 'string').join('');
    },
    close: () => {
      for (const one of cells) one.stop?.();
    },
  };
}

function* flat(node: unknown): Generator<Element | string> {
  if (node === null || node === undefined || typeof node === 'boolean') return;
  if (Array.isArray(node)) for (const one of node) yield* flat(one);
  else if (typeof node !== 'object') yield String(node);
  else {
    const element = node as Element;
    yield element;
    if (typeof element.type === 'function') yield* flat(element.type(element.props));
    else yield* flat(element.props['children']);
  }
}
