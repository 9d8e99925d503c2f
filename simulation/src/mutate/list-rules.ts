import type { Mutation } from './mutation.ts';

/** Faults in the rules that device and ledger share: merge, fold, theirs, attestation. */
export const RULE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'merge-drops-a-side',
    fault: 'Two people set one field to different values, and one of the two is gone without a question.',
    file: 'packages/core/src/merge.ts',
    find: "set: { set: 'same-value',",
    replace: "set: { set: 'both',",
    tests: ['packages/core/src/merge.test.ts', 'packages/core/src/merge-laws.test.ts'],
  },
  {
    name: 'delete-wins-over-edit',
    fault: 'Somebody deletes what another one is editing, and the edit is gone without a question.',
    file: 'packages/core/src/merge.ts',
    find: "delete: { update: 'clash', put: 'clash',",
    replace: "delete: { update: 'by-field', put: 'by-field',",
    tests: ['packages/core/src/merge.test.ts', 'packages/core/src/merge-laws.test.ts'],
  },
  {
    name: 'asked-by-order',
    fault:
      'Who clears a field that somebody else sets is asked if he comes first, and overwrites him if he comes second.',
    file: 'packages/core/src/merge.ts',
    find: "unset: { set: 'clash',",
    replace: "unset: { set: 'both',",
    tests: ['packages/core/src/merge-laws.test.ts'],
  },
  {
    name: 'prior-ignored',
    fault: 'Whoever edits twice while offline clashes with himself.',
    file: 'packages/core/src/theirs.ts',
    find: 'let own = since.prior;',
    replace: 'let own: string | null | undefined;',
    tests: ['packages/core/src/theirs.test.ts', 'packages/core/src/chain-laws.test.ts'],
  },
  {
    name: 'max-rule-is-last',
    fault: 'A field under `max` goes down again when an older device comes back.',
    file: 'packages/core/src/fold.ts',
    find: "((rule === 'max' && compareValues(now, value) >= 0) || ",
    replace: '(',
    tests: ['packages/core/src/fold.test.ts'],
  },
  {
    name: 'restore-over-the-living',
    fault: 'A restore that was accepted as the same wipes what was edited since.',
    file: 'packages/core/src/fold.ts',
    find: "  if (change.op === 'restore' && fields !== undefined) return fields;\n",
    replace: '',
    tests: ['packages/core/src/fold.test.ts'],
  },
  {
    name: 'attest-not-compared',
    fault: 'A forged position passes for one that the ledger has signed.',
    file: 'packages/core/src/digest.ts',
    find: 'return difference === 0;',
    replace: 'return difference >= 0;',
    tests: ['packages/core/src/digest.test.ts'],
  },
  {
    name: 'attest-without-key',
    fault: 'Anybody can sign a position: the key is not in the signature.',
    file: 'packages/core/src/digest.ts',
    find: 'bytesToHex(digest.hmacSha256(key, hexToBytes(identity)',
    replace: 'bytesToHex(digest.hmacSha256(key.fill(0), hexToBytes(identity)',
    tests: ['packages/core/src/digest.test.ts'],
  },
];
