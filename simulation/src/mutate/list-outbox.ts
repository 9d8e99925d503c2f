import type { Mutation } from './mutation.ts';

const OUTBOX = 'packages/replica/src/engine/outbox.ts';
const SENDING = 'packages/replica/src/engine/sending.ts';
const ANSWERS = 'packages/replica/src/engine/answers.ts';
const TESTS = ['packages/replica/src/engine/outbox.test.ts', 'packages/replica/src/engine/ingest.test.ts'];

/** Faults in the outbox and in judging: what is sent, in which order, under which name, and when it may go. */
export const OUTBOX_MUTATIONS: readonly Mutation[] = [
  {
    name: 'retry-under-new-id',
    fault: 'A retry looks like new work to the ledger, because its request id is another.',
    file: SENDING,
    find: '`UPDATE main.hf_outbox SET state = ?, retry_at = ?, fault = ? WHERE ',
    replace:
      '`UPDATE main.hf_outbox SET request_id = lower(hex(randomblob(16))), state = ?, retry_at = ?, fault = ? WHERE ',
    tests: TESTS,
  },
  {
    name: 'rebase-keeps-request-id',
    fault:
      'A late copy of a request, and what became of it by merging, share one name: the answer to one counts for the other.',
    file: 'packages/replica/src/engine/judge-verdicts.ts',
    find: 'const requestId = uuidv7(this.#store.nowMs(), platform.random);',
    replace: 'const requestId = row.requestId ?? uuidv7(this.#store.nowMs(), platform.random);',
    tests: TESTS,
  },
  {
    name: 'judged-while-owed',
    fault: 'Work whose answer is still to come is merged and sent under another name.',
    file: 'packages/replica/src/engine/judge.ts',
    find: "if (chain.some((row) => row.state === 'accepted' || this.#outbox.isUnanswered(row))) return false;",
    replace: "if (chain.some((row) => row.state === 'accepted')) return false;",
    tests: [...TESTS],
  },
  {
    name: 'discarded-while-owed',
    fault: 'Work that a person discarded comes back, because it had been accepted meanwhile.',
    file: 'packages/replica/src/engine/people.ts',
    find: "if (row.state === 'accepted' || parts.outbox.isUnanswered(row)) parts.outbox.wish(",
    replace: "if (row.state === 'accepted') parts.outbox.wish(",
    tests: ['packages/replica/src/engine/desk.test.ts', ...TESTS],
  },
  {
    name: 'successor-before-predecessor',
    fault: 'An edit is sent before the creation that it builds on.',
    file: SENDING,
    find: '        if (isBlocked(blocked, drafts, frame)) {',
    replace: "        if (blocked.has('') && isBlocked(blocked, drafts, frame)) {",
    tests: TESTS,
  },
  {
    name: 'dependents-not-held',
    fault: 'What builds on parked work is sent without it.',
    file: OUTBOX,
    find: '    for (const dependent of this.dependents.of(entities, row)) this.hold(entities, dependent, row.actionId);\n',
    replace: '',
    tests: [...TESTS, 'packages/replica/src/engine/desk.test.ts'],
  },
  {
    name: 'retired-before-its-event',
    fault: 'An edit vanishes from the screen between the answer and the event that brings it back.',
    file: ANSWERS,
    find: 'if (last <= head) {',
    replace: 'if ((last <= head || head >= 0)) {',
    tests: TESTS,
  },
  {
    name: 'count-applied-twice',
    fault: 'A confirmed count stands on the screen twice: the pending one stays on top of it.',
    file: OUTBOX,
    find: '    this.takeOut(entities, row);\n    this.#noteAside(entities, row, false);\n    database',
    replace: '    this.#noteAside(entities, row, false);\n    database',
    tests: TESTS,
  },
  {
    name: 'push-bounded-by-count-only',
    fault: 'A few large edits make a request that nobody on the way lets through.',
    file: SENDING,
    find: "(events + drafts.length > eventsMax || bytes + (row['bytes'] as number) > bytesMax);",
    replace: 'events + drafts.length > eventsMax;',
    tests: [...TESTS, 'packages/replica/src/engine/sync/bounds.test.ts'],
  },
  {
    name: 'recovery-bounded-by-count-only',
    fault: 'What is owed can never be asked about, because the question is too large.',
    file: SENDING,
    find: "events + (row['events'] as number) > bounds.eventsMax || bytes + (row['bytes'] as number) > bounds.bytesMax;",
    replace: "events + (row['events'] as number) > bounds.eventsMax;",
    tests: TESTS,
  },
  {
    name: 'needs-not-written',
    fault: 'A comment is accepted on an issue that the ledger then refuses.',
    file: 'packages/replica/src/engine/commit.ts',
    find: '...(needs.size === 0 ? {} : { needs: [...needs].slice(0, LIMITS.needsMax) }),',
    replace: '',
    tests: TESTS,
  },
  {
    name: 'broken-promise-not-asked-again',
    fault: 'Work whose promised place in the log went to somebody else waits for ever.',
    file: 'packages/replica/src/engine/ingest.ts',
    find: '  outbox.answers.askAgain(page.log, through);\n',
    replace: '',
    tests: TESTS,
  },
  {
    name: 'clock-set-back-keeps-waiting',
    fault: 'After a clock was years ahead and was set right, work waits for years.',
    file: 'packages/replica/src/engine/sync/cycle.ts',
    find: '    if (storedAtMs > clock.now() + LIMITS.retryMaxMs) parts.write(() => parts.state.resetRetries());\n',
    replace: '',
    tests: ['packages/replica/src/engine/sync/sync.integration.test.ts'],
  },
  {
    name: 'rolled-back-answer-forgets-work',
    fault: 'An answer could not be applied, and the work that it was about is never asked about again.',
    file: 'packages/replica/src/engine/sync/request.ts',
    find: "      parts.permits.oweAnswered(permit, outcomes);\n      undone({ code: 'apply-not-committed' });\n",
    replace: '',
    tests: ['packages/replica/src/engine/sync/answers.test.ts'],
  },
  {
    name: 'status-forgets-what-is-sending',
    fault: 'The window says that all is sent while it is on its way.',
    file: OUTBOX,
    find: '      of.unsent += count;\n',
    replace: "      if (state !== 'sending') of.unsent += count;\n",
    tests: [...TESTS, 'packages/replica/src/engine/sync/status.test.ts'],
  },
];
