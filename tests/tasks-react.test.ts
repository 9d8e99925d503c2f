import { resolve } from 'node:path';
import type { Id, Row } from '@holdfast/core';
import { createWorld, type World, type WorldDevice } from '@holdfast/replica/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type AppSchema, schema } from '../docs/tasks/schema.ts';
import { mount, type Screen } from './react-binding.fixture.ts';

/**
 * Tasks T1 to T6 as they stand in docs/tasks/react. `tsc -p tsconfig/react.json` compiles them against the types of
 * `@holdfast/react`; here they run over a real replica with a binding of this folder's own, until there is one.
 */
vi.mock('../docs/tasks/react/stub-of-react-binding.ts', () => import('./react-binding.fixture.ts'));
const ROOT = resolve(import.meta.dirname, '..');
const task = (name: string): Promise<Record<string, any>> =>
  import(/* @vite-ignore */ resolve(ROOT, `docs/tasks/react/${name}.tsx`));

let world: World<AppSchema>;
let ana: WorldDevice<AppSchema>;
let ben: WorldDevice<AppSchema>;
const screens: Screen[] = [];

beforeEach(async () => {
  world = await createWorld({ schema, seed: 31 });
  ana = await world.device('ana');
  ben = await world.device('ben');
  await world.settle();
});
afterEach(async () => {
  for (const screen of screens.splice(0)) screen.close();
  await world[Symbol.asyncDispose]();
});

async function shown(root: () => unknown): Promise<Screen> {
  const screen = mount(ana.replica, root);
  screens.push(screen);
  await screen.show();
  return screen;
}
const form = (fields: Record<string, string>) => new Map(Object.entries(fields));
const madeIssue = async (title: string, status: 'todo' | 'doing' = 'todo') => {
  const project = await ana.replica.commit((tx) => tx.project.create({ name: 'P' }));
  return ana.replica.commit((tx) => tx.issue.create({ project, title, status, rank: { at: 'end' } }));
};

test('[CM1 LQ2] task T1: a todo is added at the end, ticked, and deleted with an undo', async () => {
  const { Todos } = await task('t01-todo-list');
  ana.offline();
  const screen = await shown(() => Todos());
  for (const title of ['Milk', 'Bread']) {
    screen.all('form')[0]?.['action'](form({ title }));
    await world.advance(1_000);
    await screen.show();
  }
  expect(screen.text).toBe(' MilkDelete BreadDelete2 not sent yet');
  expect(screen.all('li').map((li) => li['data-sync'])).toEqual(['pending', 'pending']);
  screen.all('input')[1]?.['onChange']();
  ana.online();
  await world.settle();
  await screen.show();
  expect(screen.all('input').map((input) => input['checked'])).toEqual([undefined, true, false]);
  expect(screen.text).toContain('All sent');
  screen.all('button')[0]?.['onClick']();
  await screen.show();
  expect([screen.text, ana.replica.undo.label]).toEqual([' BreadDelete1 not sent yet', 'Delete “Milk”']);
});

test('[SC10 CM1] task T2: a card is dropped between two others, and into the last column', async () => {
  const { Board, Column } = await task('t02-issue-board');
  for (const title of ['A', 'B', 'C']) await madeIssue(title);
  const screen = await shown(() => Board());
  const column = (title: string) => screen.all(Column).find((props) => props['title'] === title)!;
  const titles = (title: string) => column(title)['cards'].map((card: Row<AppSchema, 'issue'>) => card.title);
  expect(titles('todo')).toEqual(['A', 'B', 'C']);
  column('todo')['onDrop'](column('todo')['cards'][2], 1);
  await screen.show();
  expect(titles('todo')).toEqual(['A', 'C', 'B']);
  column('done')['onDrop'](column('todo')['cards'][0], 0);
  await screen.show();
  expect([titles('todo'), titles('done'), ana.replica.undo.label]).toEqual([['C', 'B'], ['A'], 'Move to done']);
  expect(column('done')['cards'][0].closedAt).not.toBeNull();
  await world.settle();
  await world.converged();
});

test('[LQ1 LQ2] task T3: a comment carries its verified author, and a list nests its comments', async () => {
  const { Thread, IssuesWithComments } = await task('t03-comments');
  const issue = await madeIssue('A');
  await ana.replica.commit((tx) => tx.person.put({ account: 'ana', name: 'Ana' }));
  await world.settle();
  await ben.replica.commit((tx) => tx.comment.create({ issue, body: 'from ben' }));
  await world.settle();
  const screen = await shown(() => Thread({ issue }));
  screen.all('form')[0]?.['action'](form({ body: 'from ana' }));
  await screen.show();
  expect(screen.text).toBe('Somebodyfrom benAnafrom ana');
  const list = await shown(() => IssuesWithComments());
  expect(list.text).toBe('A: from ben, from ana');
});

test('[F149 CM2] task T4: a form sends what was changed, shows what others changed, and can take it', async () => {
  const { EditIssue } = await task('t04-form-with-draft');
  const id = await madeIssue('A');
  await world.settle();
  const screen = await shown(() => EditIssue({ id }));
  const type = (value: string) => screen.all('input')[0]?.['onChange']({ target: { value } });
  type('Ana');
  await screen.show();
  expect([screen.all('input')[0]?.['value'], screen.all('button').at(-2)?.['disabled']]).toEqual(['Ana', false]);
  await ben.replica.commit((tx) => tx.issue.update(id, { title: 'Ben' }));
  await world.settle();
  await screen.show();
  expect(screen.all('input')[0]?.['value']).toBe('Ana');
  expect(screen.text).toContain('Somebody changed the title to “Ben” meanwhile.');
  await expect(screen.all('form')[0]?.['action']()).rejects.toMatchObject({ code: 'changed-meanwhile' });
  screen.all('button').at(-1)?.['onClick']();
  await screen.show();
  type('both');
  await screen.show();
  await screen.all('form')[0]?.['action']();
  await world.settle();
  const row = await ben.replica.first((db) => db.selectFrom('issue').select(['title', 'body']).where('id', '=', id));
  expect(row).toEqual({ title: 'both', body: '' });
});

test('[CM6] task T5: the buttons say what they would undo, undo it, and redo it', async () => {
  const { UndoButtons } = await task('t05-undo-button');
  const id = await madeIssue('A');
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'B' }), { label: 'Rename' });
  const title = async () => (await ana.replica.first((db) => db.selectFrom('issue').select('title')))?.title;
  const screen = await shown(() => UndoButtons());
  expect(screen.text).toBe('Undo: RenameRedo');
  await screen.all('button')[0]?.['onClick']();
  await screen.show();
  expect([await title(), screen.all('button').map((button) => button['disabled'])]).toEqual(['A', [true, false]]);
  await screen.all('button')[1]?.['onClick']();
  expect(await title()).toBe('B');
});

test('[LQ1 LQ2] task T6: channels are logs of their own, followed when opened, and counted as unread', async () => {
  const { Channels, Shell } = await task('t06-workspaces-and-channels');
  const say = (body: string) => ana.replica.commit((tx) => tx.message.create({ channel: 'general', body }));
  await say('one');
  await say('two');
  const screen = await shown(() => Channels());
  expect(screen.text).toBe('general (2)Say hello');
  screen.all('button')[0]?.['onClick']();
  await world.settle();
  screen.all('button')[1]?.['onClick']();
  await world.settle();
  await ben.replica.follow('general');
  await world.settle();
  const heard = await ben.replica.query((db) => db.selectFrom('message').select(['log', 'body']).orderBy('body'));
  expect(heard).toEqual([
    { log: 'general', body: 'hello' },
    { log: 'main', body: 'one' },
    { log: 'main', body: 'two' },
  ]);
  const me = await ana.replica.commit((tx) => tx.person.put({ account: 'ana', name: 'Ana' }));
  const upTo = (await ana.replica.first((db) => db.selectFrom('message').select('arrival').where('body', '=', 'one')))
    ?.arrival as number;
  await ana.replica.commit((tx) => tx.readMark.put({ person: me as Id<'person'>, channel: 'general', upTo }));
  await world.settle();
  await world.converged();
  const shell = await shown(() => Shell({ client: {} }));
  expect(shell.text).toContain('acmeglobex');
});
