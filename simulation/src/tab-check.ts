import type { EngineDevice } from '@holdfast/replica/testing/engine';
import type { Page } from './tab-page.ts';

const SHOWN = 'select id, title, votes from note order by id';

/** I18, LK1: at rest a page shows what its host has: rows, what waits for a person, what can be taken back, the status. */
export function notAsTheHost({ notes, desk, replica }: Page, engine: EngineDevice): readonly string[] {
  const { state, database, sync } = engine;
  const rows = database.prepareQuery(SHOWN).statement.all();
  const { can, label, canRedo, redoLabel } = replica.undo;
  const { phase, unsent, attention } = replica.status.current;
  const waits = (items: readonly { readonly id: string; readonly kind: string; readonly needs: string }[]) =>
    items.map(({ id, kind, needs }) => ({ id, kind, needs }));
  return [
    ...other('rows', notes.current.rows, rows),
    ...other('desk', waits(desk ?? []), waits(state.desk())),
    ...other(
      'undo',
      { can, label, canRedo, redoLabel },
      { label: undefined, redoLabel: undefined, ...state.undoState('main') },
    ),
    ...other(
      'status',
      { phase, unsent, attention },
      { phase: sync.status.phase, unsent: sync.status.unsent, attention: sync.status.attention },
    ),
  ];
}

function other(name: string, shown: object, is: object): readonly string[] {
  const [one, two] = [canonical(shown), canonical(is)];
  return one === two ? [] : [`the tab shows as ${name} ${one}, and its host has ${two}`];
}

const canonical = (value: object): string =>
  JSON.stringify(value, (_, one) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
