import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { realFile } from '../../../simulation/src/real-data.fixture.ts';
import { type Cut, type GithubIssue, readGithubIssues, recordIssue, takenOf } from './github-issues.ts';
import { trackerSchema } from './tracker-schema.ts';

const idOf = (...key: (string | number)[]): string => key.join('-').replaceAll('/', '_');
const idOfIssue = ({ repo, number }: GithubIssue): string => idOf('issue', repo, number);
type Device = WorldDevice<typeof trackerSchema>;

const importInto = async ({ replica }: Device, issues: readonly GithubIssue[]): Promise<readonly Cut[]> => {
  const cuts: Cut[] = [];
  for (const issue of issues)
    cuts.push(...(await replica.commit((tx) => recordIssue(tx, issue, idOf), { undo: false })).cuts);
  return cuts;
};

const issue = (more: Partial<GithubIssue>): GithubIssue => ({
  repo: 'a/b',
  number: 1,
  title: 'T',
  body: '',
  state: 'open',
  labels: [],
  author: 'ana',
  assignees: [],
  created_at: '',
  closed_at: null,
  comments: [],
  ...more,
});

test('[F120 F126 P8] an issue that is too long is cut between two characters, one of 500 comments to what is counted, and each cut is told', async () => {
  await using world = await createWorld({ schema: trackerSchema, seed: 71 });
  const ana = await world.device('ana');
  await world.settle();
  const long = issue({
    title: `x${'😀'.repeat(300)}`,
    body: `x${'😀'.repeat(40_000)}`,
    comments: Array.from({ length: 500 }, (_, at) => ({ at: '2026-01-01T00:00:00Z', author: 'ben', body: `${at}` })),
  });
  const cuts = await importInto(ana, [long]);
  await world.settle();
  await world.converged();
  const row = await ana.replica.first((db) => db.selectFrom('issue').select(['title', 'body']));
  expect(row).toEqual({ title: `x${'😀'.repeat(249)}`, body: `x${'😀'.repeat(29_999)}` });
  const told = (field: 'title' | 'body') => ({
    issue: 'a/b#1',
    field,
    from: long[field]?.length,
    to: row?.[field].length,
  });
  expect(cuts).toEqual([told('title'), told('body')]);
  const comments = await ana.replica.query((db) => db.selectFrom('comment').select('body'));
  expect([comments.length, takenOf(long).commentsLeftOut]).toEqual([400, 100]);
});

test('[P8] an issue has one assignee and no author here: of whom else it names is told how many', async () => {
  await using world = await createWorld({ schema: trackerSchema, seed: 73 });
  const ana = await world.device('ana');
  await world.settle();
  const people = issue({ author: 'ana', assignees: ['ben', 'cem', 'eve'] });
  const taken = await ana.replica.commit((tx) => recordIssue(tx, people, idOf));
  expect([taken.assigneesLeftOut, taken.authorsLeftOut]).toEqual([2, 1]);
  const row = await ana.replica.first((db) => db.selectFrom('issue').selectAll());
  expect(row?.assignee).toBe('ben');
  // Whoever gives the tracker a place for them takes them, and counts nothing here.
  expect(JSON.stringify(row)).not.toMatch(/cem|eve/);
  const nobody = takenOf(issue({ author: '', assignees: [] }));
  expect([nobody.assignee, nobody.assigneesLeftOut, nobody.authorsLeftOut]).toEqual([null, 0, 0]);
});

const FILE = realFile('issues');

test.skipIf(FILE === null)(
  '[I12 I26 LG8 F120] real issues of three trackers, the first of them imported by two devices at once, are on both as the file says',
  { timeout: 120_000 },
  async () => {
    const all: GithubIssue[] = [];
    for await (const one of readGithubIssues(FILE ?? '')) all.push(one);
    expect(all).toHaveLength(1_815);
    // Each tenth, and those with most to say.
    const sizeOf = ({ body, comments }: GithubIssue) => JSON.stringify([body, comments]).length;
    const longest = all.toSorted((one, other) => sizeOf(other) - sizeOf(one)).slice(0, 20);
    const some = [...new Set([...all.filter((_, at) => at % 10 === 0), ...longest])];
    await using world = await createWorld({ schema: trackerSchema, seed: 72 });
    const [ana, ben] = [await world.device('ana'), await world.device('ben')];
    await world.settle();
    for (const device of [ana, ben]) device.offline();
    const cuts = await importInto(ana, some);
    await importInto(ben, some.slice(0, 15));
    for (const device of [ana, ben]) device.online();
    await world.settle();
    await world.converged();
    // What is not on the devices whole is told, and nothing else.
    const tooLong = some.filter(({ body }) => (body ?? '').length > 60_000);
    expect(tooLong.length).toBeGreaterThan(0);
    expect(cuts).toEqual(
      tooLong.map((one) => ({
        issue: `${one.repo}#${one.number}`,
        field: 'body',
        from: one.body?.length,
        to: 60_000,
      })),
    );
    for (const { replica } of [ana, ben]) {
      expect(await replica.desk.list()).toEqual([]);
      const issues = await replica.query((db) =>
        db.selectFrom('issue').select(['id', 'origin', 'title', 'body', 'status', 'labels', 'closedAt']),
      );
      const shown = new Map(issues.map((row) => [row.id as string, { ...row, labels: [...row.labels].sort() }]));
      expect(shown.size).toBe(some.length);
      for (const one of some)
        expect(shown.get(idOfIssue(one))).toEqual({
          id: idOfIssue(one),
          origin: `${one.repo}#${one.number}`,
          title: one.title,
          body: (one.body ?? '').slice(0, 60_000),
          status: one.state,
          labels: [...one.labels].sort(),
          closedAt: one.closed_at === null ? null : new Date(one.closed_at).toISOString(),
        });
      const comments = await replica.query((db) => db.selectFrom('comment').select(['issue', 'author', 'body']));
      const key = (of: string, author: string, body: string) => JSON.stringify([of, author, body]);
      expect(comments.map(({ issue: of, author, body }) => key(of as string, author, body)).sort()).toEqual(
        some.flatMap((one) => one.comments.map(({ author, body }) => key(idOfIssue(one), author, body))).sort(),
      );
    }
  },
);
