import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import type { Tx } from '@holdfast/core';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';
import type { TrackerSchema } from './tracker-schema.ts';

/** One issue as the files of `data/` and exports of issue trackers hold it: one JSON object a line. */
export interface GithubIssue {
  readonly repo: string;
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly state: 'open' | 'closed';
  readonly labels: readonly string[];
  readonly author: string;
  readonly assignees: readonly string[];
  readonly created_at: string;
  readonly closed_at: string | null;
  readonly comments: readonly { readonly at: string; readonly author: string; readonly body: string }[];
}

/** Longest texts that are taken whole: the rest would not fit into one event. Of comments, the first so many. */
const TEXT_MAX = 60_000;
const TITLE_MAX = 500;
export const COMMENTS_MAX = 400;

/** Reads issues line by line, from a plain or a gzipped file. A line that is none stops with its number. */
export async function* readGithubIssues(file: string): AsyncGenerator<GithubIssue> {
  const stream = createReadStream(file);
  const input = file.endsWith('.gz') ? stream.pipe(createGunzip()) : stream;
  let line = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    if (text.trim() === '') continue;
    yield parseIssue(text, file, line);
  }
}

function parseIssue(text: string, file: string, line: number): GithubIssue {
  const wrong = (why: string, cause?: unknown) =>
    new Failure({
      code: 'not-an-issue',
      what: `${file}, line ${line} is not an issue.`,
      why,
      next: 'Every line is one JSON object with at least repo, number, title and state. What came before is imported.',
      exitCode: EXIT.wrongUse,
      cause,
    });
  let issue: Partial<GithubIssue>;
  try {
    issue = JSON.parse(text) as Partial<GithubIssue>;
  } catch (cause) {
    throw wrong('It is not JSON.', cause);
  }
  if (typeof issue.title !== 'string' || typeof issue.number !== 'number') throw wrong('It has no title or no number.');
  return {
    repo: 'unknown',
    body: '',
    state: 'open',
    labels: [],
    author: 'unknown',
    assignees: [],
    created_at: '',
    closed_at: null,
    comments: [],
    ...issue,
  } as GithubIssue;
}

const instant = (text: string | null | undefined): string | null => {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
};
const HALF_AT_THE_END = /[\ud800-\udbff]$/;
/** Text of the profile, at most so many UTF-16 units; a character of two is not cut in half. */
const wellFormed = (text: string, max = TEXT_MAX): string =>
  text.toWellFormed().replaceAll('\0', '').slice(0, max).replace(HALF_AT_THE_END, '');
/** What is taken of its comments: one commit holds an issue whole. */
export const commentsOf = ({ comments }: GithubIssue): GithubIssue['comments'] => comments.slice(0, COMMENTS_MAX);

/** Records one issue with its comments. Ids come from its origin, so importing a file twice makes nothing twice. */
export function recordIssue(
  tx: Tx<TrackerSchema>,
  issue: GithubIssue,
  idOf: (...key: (string | number)[]) => string,
): string {
  const project = tx.project.put({ name: issue.repo });
  const id = tx.issue.create({
    id: idOf('issue', issue.repo, issue.number),
    project,
    origin: `${issue.repo}#${issue.number}`,
    title: wellFormed(issue.title, TITLE_MAX),
    body: wellFormed(issue.body ?? ''),
    status: issue.state === 'closed' ? 'closed' : 'open',
    assignee: issue.assignees[0] ?? null,
    labels: issue.labels.map((label) => wellFormed(label)),
    closedAt: instant(issue.closed_at),
  });
  commentsOf(issue).forEach((comment, at) => {
    tx.comment.create({
      id: idOf('comment', issue.repo, issue.number, at),
      issue: id,
      author: comment.author,
      body: wellFormed(comment.body),
      writtenAt: instant(comment.at) ?? '1970-01-01T00:00:00.000Z',
    });
  });
  return id;
}
