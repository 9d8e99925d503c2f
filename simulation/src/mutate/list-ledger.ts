import type { Mutation } from './mutation.ts';

const APPEND = 'packages/ledger/src/engine/append.ts';
const OPERATION = 'packages/ledger/src/engine/judge-operation.ts';
const IN_WORK = 'packages/ledger/src/engine/log-in-work.ts';
const ONE_BY_ONE = 'packages/ledger/src/engine/append.test.ts';
const IDENTITY = 'packages/ledger/src/engine/append-identity.test.ts';
const MERGE = 'packages/ledger/src/engine/append-merge.test.ts';
const CHECKS = 'packages/ledger/src/engine/append-checks.test.ts';

/** Faults in the ledger: what it remembers, whom it lets write and read, and when it says "accepted". */
export const LEDGER_MUTATIONS: readonly Mutation[] = [
  {
    name: 'request-remembered-in-memory',
    fault: 'A retry of a request that was accepted an hour ago is judged again.',
    file: IN_WORK,
    find: 'return this.#byRequest.get(id) ?? this.read.byRequest.get(id);',
    replace: 'return this.#byRequest.get(id);',
    tests: [IDENTITY],
  },
  {
    name: 'action-lookup-skipped',
    fault:
      'Work that comes back from a copy of the device under another request id is refused, though it is in the log.',
    file: IN_WORK,
    find: 'return this.#byAction.get(id) ?? this.read.byAction.get(id);',
    replace: 'return this.#byAction.get(id);',
    tests: [IDENTITY],
  },
  {
    name: 'event-id-not-remembered',
    fault: 'One event stands in the log twice.',
    file: OPERATION,
    find: "    if (event !== undefined) return refusal('event-id-reused', { event: id, version: event.version });\n",
    replace: '',
    tests: [IDENTITY],
  },
  {
    name: 'repeat-with-other-bytes',
    fault: 'Other work under a known request id is answered "accepted", and is lost.',
    file: OPERATION,
    find: 'return read.isRead && remembered.identity === read.drafts.identity\n',
    replace: 'return read.isRead && remembered.identity !== null\n',
    tests: [IDENTITY],
  },
  {
    name: 'refused-leaves-half',
    fault: 'Half of an operation that was refused stays in the state of the log.',
    file: OPERATION,
    find: '    if (isRefusal(judged)) {\n      log.undo();\n',
    replace: '    if (isRefusal(judged)) {\n',
    tests: [ONE_BY_ONE],
  },
  {
    name: 'needs-ignored',
    fault: 'A comment is accepted on an issue that was refused.',
    file: OPERATION,
    find: 'const need = operation.needs?.find((actionId) => !log.isAccepted(actionId));',
    replace: "const need = operation.needs?.find((actionId) => actionId === '' && !log.isAccepted(actionId));",
    tests: [MERGE],
  },
  {
    name: 'position-not-compared',
    fault: 'A device of another history appends to this one.',
    file: APPEND,
    find: '  return chain === position.chain\n',
    replace: '  return chain === position.chain || position.version >= 0\n',
    tests: [CHECKS],
  },
  {
    name: 'clone-detection-off',
    fault: 'Two copies of one device write under one name, and nobody notices.',
    file: APPEND,
    find: 'return asks.generation === known.generation && asks.instance !== known.instance\n',
    replace: 'return asks.generation === known.generation && asks.instance === undefined\n',
    tests: [CHECKS, 'packages/ledger/src/engine/handshake.test.ts'],
  },
  {
    name: 'old-generation-may-write',
    fault: 'A host that was replaced still appends.',
    file: APPEND,
    find: "  if (asks.generation < known.generation) return refusedBy('stale-generation', { details });\n",
    replace: '',
    tests: [CHECKS, 'packages/ledger/src/engine/handshake.test.ts'],
  },
  {
    name: 'late-request-may-write',
    fault: 'A request that was given up long ago arrives after its successor, and takes effect.',
    file: APPEND,
    find: 'const isLate = push.continues ? permit < highest : permit <= highest;',
    replace: 'const isLate = push.continues ? permit < highest : permit < 0;',
    tests: [CHECKS],
  },
  {
    name: 'fence-not-raised',
    fault: 'The ledger forgets who wrote last, so that nobody can ever be outranked.',
    file: 'packages/ledger/src/stores/sqlite/append.ts',
    find: '    file.sql.putReplica.run(replica, account, generation, instance, at, at, null, null);\n',
    replace:
      '    if (known === undefined) file.sql.putReplica.run(replica, account, generation, instance, at, at, null, null);\n',
    tests: ['packages/ledger/src/stores/sqlite/sqlite.test.ts', CHECKS],
  },
  {
    name: 'history-change-not-told',
    fault: 'A device is told "all is well" about a history that the ledger has lost.',
    file: 'packages/ledger/src/engine/handshake.ts',
    find: 'if (own !== undefined && !isIn(own, met, digest)) {',
    replace: 'if (own !== undefined && own.version > met.log.head && !isIn(own, met, digest)) {',
    tests: ['packages/ledger/src/engine/handshake.test.ts'],
  },
  {
    name: 'signature-always-equal',
    fault: 'A device with wrong rows is told that they are right.',
    file: 'packages/ledger/src/engine/handshake.ts',
    find: "return stored === null ? null : stored === signature ? 'equal' : 'differs';",
    replace: "return stored === null ? null : 'equal';",
    tests: ['packages/ledger/src/engine/handshake.test.ts'],
  },
  {
    name: 'page-bounded-by-count-only',
    fault: 'A page of large events is too large for whoever asked, who asks again for ever.',
    file: 'packages/ledger/src/engine/event-page.ts',
    find: '(events + more > eventsMax || bytes + bytesOf(operation) > bytesMax)) break;',
    replace: 'events + more > eventsMax) break;',
    tests: ['packages/ledger/src/engine/read.test.ts'],
  },
  {
    name: 'acknowledged-before-sync',
    fault: 'After a power cut the ledger has lost what it called accepted.',
    file: 'packages/ledger/src/stores/sqlite/format.ts',
    find: '  PRAGMA synchronous = FULL;\n',
    replace: '  PRAGMA synchronous = NORMAL;\n',
    tests: ['packages/ledger/src/stores/sqlite/durability.test.ts', 'packages/ledger/src/stores/sqlite/sqlite.test.ts'],
  },
  {
    name: 'failed-commit-acknowledged',
    fault: 'The disk was full, and the ledger says "accepted" all the same.',
    file: 'packages/ledger/src/stores/sqlite/workspace-file.ts',
    find: '      throw this.#afterFailedCommit(cause);\n',
    replace: '      this.#afterFailedCommit(cause);\n',
    tests: ['packages/ledger/src/stores/sqlite/durability.test.ts', 'packages/ledger/src/stores/sqlite/sqlite.test.ts'],
  },
  {
    name: 'unknown-commit-tried-again',
    fault: 'A group whose commit may have happened is appended once more, push by push.',
    file: 'packages/ledger/src/engine/group.ts',
    find: 'if (!isRolledBack(cause) || !isPerhapsTheirs(cause)) return',
    replace: 'if (!isPerhapsTheirs(cause)) return',
    tests: ['packages/ledger/src/engine/group.test.ts', 'packages/ledger/src/stores/sqlite/durability.test.ts'],
  },
  {
    name: 'replaced-file-not-noticed',
    fault: 'Work is accepted into a file that somebody has replaced.',
    file: 'packages/ledger/src/stores/sqlite/workspace-file.ts',
    find: '    if (!this.#proof.holds()) this.#giveUp();\n',
    replace: '',
    tests: ['packages/ledger/src/stores/sqlite/durability.test.ts', 'packages/ledger/src/stores/sqlite/sqlite.test.ts'],
  },
  {
    name: 'read-without-access',
    fault: 'Anybody with any account reads any workspace.',
    file: 'packages/ledger/src/http/app.ts',
    find: "      if (actor === null) return refuse(c, refusedBy('not-found'));\n      const problem = nameProblem(ref);\n      if (problem !== null) return refuse(c, problem);\n      return answer(c, await run(actor, ref, new Query(c)));",
    replace:
      "      const problem = nameProblem(ref);\n      if (problem !== null) return refuse(c, problem);\n      return answer(c, await run(actor ?? { account: caller.account, role: 'reader' }, ref, new Query(c)));",
    tests: ['packages/ledger/src/http/app.test.ts', 'tests/black-box.test.ts'],
  },
  {
    name: 'reader-may-write',
    fault: 'Whoever may only read, writes.',
    file: 'packages/ledger/src/engine/create-engine.ts',
    find: "      if (actor.role === 'reader') return refuse(refusedBy('not-allowed'), vouch);\n",
    replace: '',
    tests: ['tests/black-box.test.ts', CHECKS],
  },
  {
    name: 'expired-credential-accepted',
    fault: 'Access that has ended goes on.',
    file: 'packages/ledger/src/http/app.ts',
    find: "if (caller === null || hasEnded(caller)) return refuse(c, refusedBy('unauthenticated'));",
    replace: "if (caller === null) return refuse(c, refusedBy('unauthenticated'));",
    tests: ['packages/ledger/src/http/app.test.ts'],
  },
];
