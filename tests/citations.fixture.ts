import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/** The repository. Names of files below are relative to it. */
export const ROOT = resolve(import.meta.dirname, '..');

const FOLDERS = ['packages', 'contract', 'simulation', 'scenarios', 'tests', 'docs'];
const CITED =
  /(?:test|it|describe)(?:\.(?:each|skipIf|runIf|concurrent|sequential)\([\s\S]{0,2000}?\))?\(\s*[`'"]((?:\[[A-Z0-9 ,]+\] ?)+)/g;

/** The ids in brackets at the start of each test's name: `[LG2 I04] …`, or `[I30] [F20] …`. */
export function citationsOf(text: string): string[] {
  return [...text.matchAll(CITED)].flatMap((match) => (match[1] as string).split(/[[\] ,]+/).filter(Boolean));
}

function testFiles(): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name) && !entry.parentPath.includes('node_modules'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  ).filter((file) => /\.(test|e2e)\.ts$/.test(file) || file.startsWith('contract/'));
}

/** Which files cite an id; an id that no test cites is not in it. */
export function citations(): ReadonlyMap<string, ReadonlySet<string>> {
  const files = new Map<string, Set<string>>();
  for (const file of testFiles())
    for (const id of citationsOf(readFileSync(join(ROOT, file), 'utf8'))) {
      const citing = files.get(id) ?? new Set();
      files.set(id, citing.add(file));
    }
  return files;
}
