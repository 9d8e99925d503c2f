import type { SeededRandom } from '@holdfast/replica/testing';
import { isHoldfastError } from '../../packages/replica/src/client/holdfast-error.ts';
import type { DeskItem } from '../../packages/replica/src/client/replica.ts';
import type { Page } from './tab-page.ts';

/**
 * A person in front of a tab, who sees what it shows and nothing else, and acts by the public client: decides what waits,
 * takes back and makes again, gives work up, waits for the ledger, looks at one row, looks away. Whatever is asked for has
 * to be answered, and no answer may be a defect.
 */
export interface TabPerson {
  readonly counts: Readonly<Record<string, number>>;
  /** Null: the page shows nothing yet. */
  act(page: Page): string | null;
}

export function createTabPerson(parts: {
  readonly random: SeededRandom;
  readonly flawed: (invariant: string, what: string) => void;
}): TabPerson {
  const { random, flawed } = parts;
  const counts: Record<string, number> = {};
  let asks = 0;

  const ask = (page: Page, what: string, answer: Promise<unknown>): string => {
    asks += 1;
    const name = `${what} ${asks}`;
    page.waiting.add(name);
    const over = (how: string): void => {
      page.waiting.delete(name);
      const of = `${what} in a tab${how}`;
      counts[of] = (counts[of] ?? 0) + 1;
    };
    answer.then(
      () => over(''),
      (cause: unknown) => {
        if (!isHoldfastError(cause) || DEFECTS.has(cause.code)) flawed('I29', `${what} met a defect: ${cause}`);
        over(', refused');
      },
    );
    return what;
  };

  const decide = (page: Page, item: DeskItem): string => {
    const { desk } = page.replica;
    switch (random.below(5)) {
      case 0:
        return ask(page, 'discarded', desk.discard(item.id));
      case 1:
        return ask(page, 'resolved theirs', resolve(page, item, 'theirs'));
      case 2:
        return ask(page, 'resolved with a value', resolve(page, item, valueFor(item)));
      default:
        return ask(page, 'resolved mine', resolve(page, item, 'mine'));
    }
  };

  /** What was decided waits no longer, as the same host says afterwards. */
  const resolve = async (page: Page, item: DeskItem, choice: Parameters<Page['replica']['desk']['resolve']>[1]) => {
    const { replica, servedBy } = page;
    await replica.desk.resolve(item.id, choice);
    const after = await page.link.request('desk', {});
    if (servedBy !== null && page.servedBy === servedBy && after.some(({ id }) => id === item.id))
      flawed('I18', `${item.kind} ${item.id} was resolved, and waits still`);
  };

  const valueFor = (item: DeskItem): Readonly<Record<string, unknown>> => {
    const field = item.fields.find(({ field: of }) => VALUES[of] !== undefined)?.field ?? 'title';
    return { [field]: random.pick(VALUES[field] as readonly unknown[]) };
  };

  /** Work of its own that nobody asks this person about, with a name, so that it can be taken back. */
  const commit = (page: Page): string => {
    const shown = page.notes.current.rows;
    const label = `by hand ${asks}`;
    const write = page.replica.commit(
      (tx) => {
        if (shown.length === 0) tx.note.create({ title: 'by hand' });
        else tx.note.update(random.pick(shown).id as never, { title: random.pick(['one', 'two', 'three']) });
      },
      { label },
    );
    ask(page, 'ordered', write.ordered());
    if (random.chance(0.3)) ask(page, 'given up', page.replica.desk.discard(write.id));
    return ask(page, 'committed', write);
  };

  /** One row, for as long as the page lives or until it is closed at once. */
  const watch = (page: Page): string => {
    const shown = page.notes.current.rows;
    if (shown.length === 0) return 'watches nothing';
    const { id } = random.pick(shown);
    const live = page.replica.live((db) =>
      db
        .selectFrom('note')
        .selectAll()
        .where('id', '=', id as never),
    );
    let told = 0;
    live.subscribe(() => {
      told += 1;
    });
    if (random.chance(0.5)) live[Symbol.dispose]();
    return `watches a row, told ${told}`;
  };

  return {
    counts,
    act: (page) => {
      const { replica, desk } = page;
      if (desk === null) return null;
      if (desk.length > 0 && random.chance(0.7)) return decide(page, random.pick(desk));
      switch (random.below(8)) {
        case 0:
        case 1:
          return ask(page, 'undone', replica.undo.undo({ skipChanged: random.chance(0.5) }));
        case 2:
          return ask(page, 'redone', replica.undo.redo());
        case 3:
          return watch(page);
        case 4:
          page.link.setVisible(random.chance(0.5));
          return 'looks here or away';
        default:
          return commit(page);
      }
    },
  };
}

/** What no person can cause. */
const DEFECTS: ReadonlySet<string> = new Set(['engine-fault', 'malformed', 'replica-damaged']);

const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  title: ['one', 'two', 'three', 'chosen'],
  body: ['chosen', null],
  status: ['open', 'doing', 'closed'],
  level: [1, 4],
};
