import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** A real issue of `data/tracker_issues.jsonl.gz`. */
export interface RealIssue {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly state: 'open' | 'closed';
  readonly labels: readonly string[];
  readonly author: string;
  readonly assignees: readonly string[];
  readonly created_at: string;
  readonly comments: readonly { readonly at: string; readonly author: string; readonly body: string }[];
}

export function realIssues(): readonly RealIssue[] {
  const file = join(import.meta.dirname, '../../data/tracker_issues.jsonl.gz');
  return gunzipSync(readFileSync(file))
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RealIssue);
}

/** `count` issues with real texts; repeated with a number where there are not enough. */
export function issues(count: number): readonly RealIssue[] {
  const real = realIssues();
  return Array.from({ length: count }, (_, at) => {
    const issue = real[at % real.length] as RealIssue;
    return at < real.length
      ? issue
      : { ...issue, number: at + 1, title: `${issue.title} (${Math.floor(at / real.length)})` };
  });
}
