import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createClient } from '@holdfast/replica';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { COMMENTS_MAX, type Cut, readGithubIssues, recordIssue } from '../github-issues.ts';
import type { CommandContext } from '../main.ts';
import { tokenFrom } from '../options.ts';
import { type Output, printable } from '../output.ts';
import { settleWithin } from '../settle-within.ts';
import { trackerSchema } from '../tracker-schema.ts';
import type { ImportOptions } from './register-import.ts';

/** Ids from where a record came from, so that importing a file again makes nothing again. */
const idOf = (...key: (string | number)[]): string =>
  createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 32);

export async function importGithubIssues(file: string, options: ImportOptions, context: CommandContext): Promise<void> {
  if (!existsSync(file))
    throw new Failure({
      code: 'not-found',
      what: `There is no file ${file}.`,
      why: 'Issues are read line by line from it.',
      next: 'Try data/tracker_issues.jsonl.gz of the repository.',
      exitCode: EXIT.wrongUse,
    });
  const output = context.output();
  const token = tokenFrom(options) ?? 'dev';
  await using client = createClient({
    schema: trackerSchema,
    dir: options.dir,
    ledger: options.ledger,
    account: { id: options.account, token: () => token },
  });
  const replica = await client.open(options.workspace);
  // What is here already tells what a second run need not bring.
  await settleWithin(replica, 30_000);
  let issues = 0;
  let comments = 0;
  let already = 0;
  let commentsLeftOut = 0;
  let assigneesLeftOut = 0;
  let authorsLeftOut = 0;
  let cut = 0;
  const cuts: Cut[] = [];
  for await (const issue of readGithubIssues(file)) {
    if (options.limit !== undefined && issues + already >= options.limit) break;
    const id = idOf('issue', issue.repo, issue.number);
    if ((await replica.first((db) => db.selectFrom('issue').select('id').where('id', '=', id))) !== undefined)
      already += 1;
    else {
      const taken = await replica.commit((tx) => recordIssue(tx, issue, idOf), {
        label: `Import ${issue.repo}#${issue.number}`,
        undo: false,
      });
      issues += 1;
      comments += taken.comments.length;
      commentsLeftOut += taken.commentsLeftOut;
      assigneesLeftOut += taken.assigneesLeftOut;
      authorsLeftOut += taken.authorsLeftOut;
      cut += taken.cuts.length;
      cuts.push(...taken.cuts.slice(0, CUTS_KEPT - cuts.length));
    }
    output.progress(`${issues} issues, ${comments} comments …`);
  }
  output.progress('Sending …');
  const { isGivenUp } = await settleWithin(replica, 60_000);
  const { unsent } = replica.status.current;
  const leftOut = { commentsLeftOut, assigneesLeftOut, authorsLeftOut };
  output.value({ issues, comments, ...leftOut, cut, cuts, already, unsent });
  output.line(
    `${issues} issues with ${comments} comments imported${already > 0 ? `, ${already} were here already` : ''}.`,
  );
  if (commentsLeftOut > 0)
    output.line(`${commentsLeftOut} comments were left out: of one issue at most ${COMMENTS_MAX} are taken.`);
  if (assigneesLeftOut > 0)
    output.line(`${assigneesLeftOut} assignees were left out: of one issue the first is taken.`);
  if (authorsLeftOut > 0)
    output.line(`Who opened it was left out of ${authorsLeftOut} issues: there is no field for it here.`);
  if (cut > 0) tellCut(output, cut, cuts);
  if (isGivenUp || (unsent ?? 0) > 0) {
    output.line(`They are durable in ${options.dir}; ${unsent} batches wait for the ledger at ${options.ledger}.`);
    context.exit(EXIT.notReachable);
  }
}

/** How many texts that were cut are named: to programs, and to people. */
const CUTS_KEPT = 1_000;
const CUTS_SHOWN = 5;

function tellCut(output: Output, cut: number, cuts: readonly Cut[]): void {
  output.line(`${cut === 1 ? 'One text was' : `${cut} texts were`} too long, and the end of each was cut off:`);
  for (const { issue, field, from, to } of cuts.slice(0, CUTS_SHOWN))
    output.line(`   ${printable(issue)}  ${field}: ${from} characters became ${to}`);
  if (cut > CUTS_SHOWN) output.line(`   and ${cut - CUTS_SHOWN} more`);
}
