import type { Mutation } from './mutation.ts';

const VOUCH = 'packages/replica/src/engine/sync/vouch.ts';
const TESTS = ['packages/replica/src/engine/sync/vouch.test.ts', 'packages/replica/src/engine/sync/answers.test.ts'];

/** Faults in what a device believes of an answer. */
export const WIRE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'html-answer-accepted',
    fault: 'A hotel’s login page counts as the ledger’s answer.',
    file: VOUCH,
    find: "const why = isJson ? strangerBy(received, expected) : 'not-json';",
    replace: 'const why = isJson ? strangerBy(received, expected) : null;',
    tests: TESTS,
  },
  {
    name: 'answer-not-bound',
    fault: 'The answer to one request is taken for that to another.',
    file: VOUCH,
    find: "  if (received.header(HEADERS.permit) !== String(expected.permit)) return 'permit-not-echoed';\n",
    replace: '',
    tests: TESTS,
  },
  {
    name: 'log-identity-not-compared',
    fault: 'A log of the same name on another server is taken for this one.',
    file: VOUCH,
    find: "  if (identity !== null && expected.identity !== null && identity !== expected.identity) return 'other-log-identity';\n",
    replace: '',
    tests: TESTS,
  },
  {
    name: 'server-error-taken-as-refusal',
    fault: 'A gateway’s 502 counts as "the ledger refused it", though the work was done.',
    file: VOUCH,
    find: '  if (status >= 500 || status === 429)\n    return {',
    replace: '  if (status === 429)\n    return {',
    tests: TESTS,
  },
  {
    name: 'answer-may-leave-work-out',
    fault: 'An answer that says nothing of a commit counts as one that does.',
    file: 'packages/replica/src/engine/sync/push.ts',
    find: 'return results.length === open.size && results.every(',
    replace: 'return results.length <= open.size && results.every(',
    tests: ['packages/replica/src/engine/sync/answers.test.ts'],
  },
  {
    name: 'epoch-not-compared',
    fault: 'After the ledger was restored, pages of its other history are taken for this one.',
    file: 'packages/replica/src/engine/sync/pull.ts',
    find: "  if (epoch !== null && page.epoch !== epoch) return { code: 'history-changed', facts: { epoch: page.epoch } };\n",
    replace: '',
    tests: ['packages/replica/src/engine/sync/repair.test.ts'],
  },
  {
    name: 'account-not-compared',
    fault: 'One person’s unsent work is sent in the name of another.',
    file: 'packages/replica/src/engine/sync/handshake.ts',
    find: "  if (answer.account !== parts.state.identity.account)\n    return { next: 'wait-whole', phase: 'other-account', fault: { code: 'other-account' }, isIdTaken: true };\n",
    replace: '',
    tests: ['packages/replica/src/engine/sync/sign-in.test.ts'],
  },
  {
    name: 'clone-keeps-its-id',
    fault: 'A device that was restored from a backup goes on under an id that another one uses.',
    file: 'packages/replica/src/engine/sync/whole.ts',
    find: '    parts.state.renewReplicaId();\n',
    replace: '',
    tests: ['packages/replica/src/engine/sync/answers.test.ts'],
  },
  {
    name: 'live-while-behind',
    fault: 'The window says "up to date" while events are still to come.',
    file: 'packages/replica/src/engine/sync/status.ts',
    find: "if (log.stage !== 'visible' || log.repairing || isBehind(log, facts))",
    replace: "if (log.stage !== 'visible' || log.repairing)",
    tests: ['packages/replica/src/engine/sync/status.test.ts'],
  },
  {
    name: 'frozen-tab-is-told-all',
    fault: 'A tab in the background hears nothing, and its host posts every change to it until memory is gone.',
    file: 'packages/replica/src/host/live-run.ts',
    find: 'watcher.isVisible && !watcher.isBehind',
    replace: 'watcher.isVisible',
    tests: ['packages/replica/src/host/live-queries.test.ts', 'simulation/src/tab.test.ts'],
  },
];
