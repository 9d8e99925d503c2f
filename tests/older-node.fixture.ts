import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** The Node that a machine brings, and not the repository: what `npm start` has to begin with. */
export interface OlderNode {
  readonly file: string;
  /** `20.20.2` */
  readonly version: string;
}

const OLDEST = 20;
const REPOSITORYS = 26;
const ROOT = resolve(import.meta.dirname, '..');

/** `PATH` as it is outside the repository. */
export const pathOutside = (): readonly string[] =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.replaceAll('\\', '/').includes('node_modules/'));

/** The newest Node of the `PATH` that is older than the repository's, and not too old. Null, and said, where there is none. */
export function olderNode(): OlderNode | null {
  const own = realpathSync(join(ROOT, 'node_modules/node/bin/node'));
  const files = pathOutside()
    .map((folder) => join(folder, 'node'))
    .filter(existsSync);
  const fitting = [...new Set(files.map((file) => realpathSync(file)))]
    .filter((file) => file !== own)
    .map((file) => ({ file, version: versionOf(file) }))
    .filter(({ version }) => majorOf(version) >= OLDEST && majorOf(version) < REPOSITORYS)
    .sort((one, other) => other.version.localeCompare(one.version, 'en', { numeric: true }));
  const [newest] = fitting;
  if (newest === undefined) console.log(`skipped: no Node from ${OLDEST} to ${REPOSITORYS - 1} is on the PATH`);
  return newest ?? null;
}

/** Empty where it says none. */
const versionOf = (file: string): string =>
  spawnSync(file, ['-p', 'process.versions.node'], { encoding: 'utf8', timeout: 20_000 }).stdout?.trim() ?? '';
const majorOf = (version: string): number => Number(version.split('.')[0] || 0);
