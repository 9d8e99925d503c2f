import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type Mutation, mutated } from './mutation.ts';

/**
 * The repository's sources in a temporary folder, where one file at a time may be wrong. The working tree is only read.
 * Its packages resolve into the copy; what was installed from elsewhere is linked, not copied.
 */
export interface Copy {
  readonly folder: string;
  /** Puts the fault in, runs, and takes it out again, whatever happens. */
  with<T>(mutation: Mutation | null, run: () => Promise<T>): Promise<T>;
  remove(): void;
}

const LEFT_OUT: ReadonlySet<string> = new Set(['node_modules', '.git', 'dist', 'coverage', 'tmp']);

export function createCopy(root: string): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutate-'));
  for (const name of readdirSync(root))
    if (!LEFT_OUT.has(name))
      cpSync(join(root, name), join(folder, name), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !path.split(sep).includes('node_modules'),
      });
  linkModules(root, folder);
  return {
    folder,
    with: async (mutation, run) => {
      if (mutation === null) return run();
      const path = join(folder, mutation.file);
      const sound = readFileSync(path, 'utf8');
      try {
        writeFileSync(path, mutated(sound, mutation));
        return await run();
      } finally {
        writeFileSync(path, sound);
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/** A folder of links: those into the repository lead into the copy, all others to what is installed. */
function linkModules(root: string, folder: string): void {
  const modules = join(root, 'node_modules');
  for (const name of readdirSync(modules)) {
    if (name.startsWith('@') || name === '.bin') {
      mkdirSync(join(folder, 'node_modules', name), { recursive: true });
      for (const inner of readdirSync(join(modules, name))) linkOne(root, folder, join('node_modules', name, inner));
    } else if (!name.startsWith('.')) linkOne(root, folder, join('node_modules', name));
  }
}

function linkOne(root: string, folder: string, path: string): void {
  const from = join(root, path);
  const target = lstatSync(from).isSymbolicLink() ? readlinkSync(from) : null;
  const isOurs = target !== null && !isAbsolute(target) && isInside(root, resolve(from, '..', target));
  mkdirSync(resolve(folder, path, '..'), { recursive: true });
  symlinkSync(isOurs ? target : from, join(folder, path));
}

const isInside = (root: string, path: string): boolean => !relative(root, path).startsWith('..');
