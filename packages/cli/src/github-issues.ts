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
  /** Empty where the file does not say. */
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
    author: '',
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
/** Text of the profile. */
const wellFormed = (text: string): string => text.toWellFormed().replaceAll('\0', '');
/** At most so many UTF-16 units; a character of two is not cut in half. */
const atMost = (text: string, max: number): string => text.slice(0, max).replace(HALF_AT_THE_END, '');

/** A text of an issue that was too long, and what was taken of it, in UTF-16 units. */
export interface Cut {
  /** `owner/name#7`. */
  readonly issue: string;
  /** `title`, `body`, `labels`, or `comment 3`, counted from 1. */
  readonly field: string;
  readonly from: number;
  readonly to: number;
}

/** What is taken of an issue, and what is not: so many comments, people that it has no field for, the ends of these texts. */
export interface TakenIssue {
  readonly origin: string;
  readonly title: string;
  readonly body: string;
  readonly labels: readonly string[];
  readonly comments: GithubIssue['comments'];
  readonly commentsLeftOut: number;
  /** An issue has one assignee here: the first. */
  readonly assignee: string | null;
  readonly assigneesLeftOut: number;
  /** Who opened it; nobody where the file does not say. An issue has no field for it. */
  readonly authorsLeftOut: 0 | 1;
  readonly cuts: readonly Cut[];
}

export function takenOf(issue: GithubIssue): TakenIssue {
  const origin = `${issue.repo}#${issue.number}`;
  const cuts: Cut[] = [];
  const taken = (field: string, text: string, max = TEXT_MAX): string => {
    const whole = wellFormed(text);
    const short = atMost(whole, max);
    if (short.length < whole.length) cuts.push({ issue: origin, field, from: whole.length, to: short.length });
    return short;
  };
  return {
    origin,
    title: taken('title', issue.title, TITLE_MAX),
    body: taken('body', issue.body ?? ''),
    labels: issue.labels.map((label) => taken('labels', label)),
    // One commit holds an issue whole.
    comments: issue.comments
      .slice(0, COMMENTS_MAX)
      .map((comment, at) => ({ ...comment, body: taken(`comment ${at + 1}`, comment.body) })),
    commentsLeftOut: Math.max(0, issue.comments.length - COMMENTS_MAX),
    assignee: issue.assignees[0] ?? null,
    assigneesLeftOut: Math.max(0, issue.assignees.length - 1),
    authorsLeftOut: issue.author === '' ? 0 : 1,
    cuts,
  };
}

/**
 * Records one issue with its comments, and tells what was taken of it. Ids come from its origin, so importing a file twice
 * makes nothing twice.
 */
export function recordIssue(
  tx: Tx<TrackerSchema>,
  issue: GithubIssue,
  idOf: (...key: (string | number)[]) => string,
): TakenIssue {
  const taken = takenOf(issue);
  const project = tx.project.put({ name: issue.repo });
  const id = tx.issue.create({
    id: idOf('issue', issue.repo, issue.number),
    project,
    origin: taken.origin,
    title: taken.title,
    body: taken.body,
    status: issue.state === 'closed' ? 'closed' : 'open',
    assignee: taken.assignee,
    labels: taken.labels,
    closedAt: instant(issue.closed_at),
  });
  taken.comments.forEach((comment, at) => {
    tx.comment.create({
      id: idOf('comment', issue.repo, issue.number, at),
      issue: id,
      author: comment.author,
      body: comment.body,
      writtenAt: instant(comment.at) ?? '1970-01-01T00:00:00.000Z',
    });
  });
  return taken;
}
