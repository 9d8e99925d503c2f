import { basename } from 'node:path';
import { type Change, foldChange, type JsonObject } from '@holdfast/core';
import { expect, test } from 'vitest';
import { draftOf, ModelLedger, operationOf, rebaseOn } from '../packages/core/src/model-ledger.fixture.ts';
import { realData } from '../simulation/src/real-data.fixture.ts';

/**
 * Twelve years of people who edit shared documents, with 1,481 real merges: each path an entity, each commit its changes. It
 * is folded along its graph, and what the engine would ask a person at each merge is compared with what git itself says.
 */
interface Commit {
  readonly i: number;
  readonly parents: readonly number[];
  readonly files: readonly { readonly path: string; readonly status: 'A' | 'M' | 'D' | 'R'; readonly from?: string }[];
  readonly merge?: {
    /** Absent where two histories without a common past met. */
    readonly base?: number;
    /** Paths that differ from the base on both sides. */
    readonly both?: readonly string[];
    /** Those of them that git could not merge. */
    readonly conflicts?: readonly string[];
  };
}
type Tree = ReadonlyMap<string, JsonObject>;

const COMMITS = realData<Commit>('git_history');

/** What a path holds is not in the data: the commit that wrote it stands for it. */
const written = (by: number): JsonObject => ({ by });

type PathChange = readonly [path: string, change: Change];

function changesOf({ i, files }: Commit): readonly PathChange[] {
  return files.flatMap(({ path, status, from }): readonly PathChange[] => {
    if (status === 'M') return [[path, { op: 'update', set: written(i) }]];
    if (status === 'D') return [[path, { op: 'delete' }]];
    const created: PathChange = [path, { op: 'create', fields: written(i) }];
    return status === 'A' ? [created] : [[from as string, { op: 'delete' }], created];
  });
}

/** What one side of a merge did to a path since the base; undefined where nothing. */
function changeSince(base: JsonObject | undefined, now: JsonObject | undefined): Change | undefined {
  if (base?.['by'] === now?.['by']) return undefined;
  if (now === undefined) return { op: 'delete' };
  return base === undefined ? { op: 'create', fields: now } : { op: 'update', set: now };
}

/** One device's change is in the log, the other's comes: what the path holds then, or that a person is asked. */
function merged(before: JsonObject | undefined, first: Change, second: Change): JsonObject | 'asked' | undefined {
  const ledger = new ModelLedger();
  if (before !== undefined) ledger.push(operationOf(draftOf('before', { op: 'create', fields: before }, 0)));
  const base = ledger.events.length;
  expect(ledger.push(operationOf(draftOf('first', first, base))).code).toBe('accepted');
  const operation = operationOf(draftOf('second', second, base));
  if (ledger.push(operation).code !== 'accepted') {
    const [judged] = rebaseOn(ledger, [operation]);
    if (judged?.outcome === 'parked') return 'asked';
    if (judged?.outcome === 'rebased') ledger.push({ ...operation, events: judged.events });
  }
  return ledger.state?.fields;
}

/** A merge: what both sides leave, and about which paths a person is asked. */
function merge(commit: Commit, ours: Tree, { theirs, base }: { readonly theirs: Tree; readonly base: Tree }) {
  const tree = new Map(ours);
  const asked = new Set<string>();
  const put = (path: string, fields: JsonObject | undefined) =>
    fields === undefined ? tree.delete(path) : tree.set(path, fields);
  for (const path of new Set([...base.keys(), ...ours.keys(), ...theirs.keys()])) {
    const before = base.get(path);
    const [mine, other] = [changeSince(before, ours.get(path)), changeSince(before, theirs.get(path))];
    if (other === undefined) continue;
    if (mine === undefined) {
      put(path, theirs.get(path));
      continue;
    }
    const after = merged(before, mine, other);
    expect(merged(before, other, mine)).toEqual(after);
    if (after === 'asked') asked.add(path);
    // Nobody is asked: then both did the same.
    else expect([path, after, theirs.get(path)]).toEqual([path, ours.get(path), after]);
    put(path, after === 'asked' ? written(commit.i) : after);
  }
  return { tree, asked };
}

test.skipIf(COMMITS === null)(
  '[MG2 MG3 EV6] 6,828 real commits fold along their graph, and at 1,481 merges a person is asked about everything that git cannot merge',
  () => {
    const trees: Tree[] = [];
    const refused: string[] = [];
    /** Git follows a file that moved, by a rename or by two commits, and names its new place; here its old one was edited. */
    const movedFrom = new Map<string, string>();
    const isAbout = (path: string, asked: ReadonlySet<string>): boolean =>
      [...asked].some((one) => basename(one) === basename(path) || movedFrom.get(path) === one);
    let [merges, conflicts, asked, askedInVain] = [0, 0, 0, 0];
    for (const commit of COMMITS ?? []) {
      const [ours = new Map(), theirs] = commit.parents.map((at) => trees[at] as Tree);
      if (theirs === undefined) {
        const tree = new Map(ours);
        for (const { path, from } of commit.files) if (from !== undefined) movedFrom.set(path, from);
        for (const [path, change] of changesOf(commit)) {
          const folded = foldChange(tree.get(path), change);
          if (!folded.ok) {
            refused.push(`${commit.i} ${path}: ${String(folded.fault.facts?.['reason'])}`);
            // It is there all the same: it came with a merge, of which the data says no more than its sides.
            tree.set(path, written(commit.i));
          } else if (folded.value === undefined) tree.delete(path);
          else tree.set(path, folded.value);
        }
        trees.push(tree);
        continue;
      }
      const result = merge(commit, ours, { theirs, base: trees[commit.merge?.base ?? -1] ?? new Map() });
      trees.push(result.tree);
      const { both = [], conflicts: unmerged = [] } = commit.merge ?? {};
      const silent = unmerged.filter((path) => !isAbout(path, result.asked));
      expect([commit.i, silent]).toEqual([commit.i, []]);
      merges += 1;
      conflicts += unmerged.length;
      asked += result.asked.size;
      const said = new Set(both);
      askedInVain += [...result.asked].filter((path) => !isAbout(path, said)).length;
    }
    console.log(
      `${trees.length} commits, ${merges} merges: git cannot merge ${conflicts} files, a person is asked about ${asked}, ` +
        `${askedInVain} of them alike again; does not fold: ${refused.join('; ')}`,
    );
    expect([trees.length, merges]).toEqual([6_828, 1_481]);
    expect(conflicts).toBeGreaterThan(100);
    expect(refused.length).toBeLessThanOrEqual(1);
    // Two sides that wrote other commits may have the same bytes: that is not in the data.
    expect(askedInVain / asked).toBeLessThan(0.2);
  },
);
