import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * What others wrote comes in by package-lock.json alone: few packages, each by the hash of its bytes, and none of them runs
 * anything when it is installed but the one that brings Node itself to this repository. Our own names never come from
 * outside.
 */
const ROOT = resolve(import.meta.dirname, '..');
const REGISTRY = 'https://registry.npmjs.org/';
const OURS = /^node_modules\/(@holdfast(-internal)?\/.+|holdfast)$/;
/** Of an app that has all four packages, with what they need in turn. Who needs one more says why. */
const PACKAGES_MAX = 25;

interface Locked {
  readonly link?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}
interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

const read = <T>(path: string): T => JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T;

/** What is wrong with the packages of a lock file, by path. `mayRun`: whose install scripts are wanted. */
function wrongIn(packages: Readonly<Record<string, Locked>>, mayRun: ReadonlySet<string>): string[] {
  return Object.entries(packages).flatMap(([path, { link, resolved, integrity, hasInstallScript, dev }]) => {
    if (!path.includes('node_modules/')) return [];
    if (OURS.test(path)) return link === true ? [] : [`${path} is not ours`];
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    return [
      ...(integrity?.startsWith('sha512-') === true ? [] : [`${path} has no hash`]),
      ...(resolved === undefined || resolved.startsWith(REGISTRY) ? [] : [`${path} is from ${resolved}`]),
      ...(hasInstallScript !== true || (mayRun.has(name) && dev === true) ? [] : [`${path} runs when installed`]),
    ];
  });
}

const { packages } = read<{ packages: Record<string, Locked> }>('package-lock.json');
const mayRun = new Set(Object.keys(read<Manifest>('package.json').allowScripts ?? {}));

test('[F192] whatever is installed is known by its hash, is few, and runs nothing', () => {
  expect(wrongIn(packages, mayRun)).toEqual([]);
  expect([...mayRun]).toEqual(['node']);
  const shipped = Object.entries(packages).filter(
    ([path, one]) => path.startsWith('node_modules/') && !OURS.test(path) && !one.dev && !one.devOptional,
  );
  expect(shipped.length).toBeLessThanOrEqual(PACKAGES_MAX);
});

test('[F192] what we publish asks for exact versions, and runs nothing when it is installed', () => {
  for (const name of ['core', 'replica', 'ledger', 'cli']) {
    const { dependencies = {}, scripts = {} } = read<Manifest>(`packages/${name}/package.json`);
    expect([name, Object.values(dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))]).toEqual([
      name,
      [],
    ]);
    expect([name, Object.keys(scripts).filter((script) => /^(pre|post)?(install|prepare)$/.test(script))]).toEqual([
      name,
      [],
    ]);
  }
});

test('[F192] a lock file that lets something in is seen', () => {
  const hash = { integrity: 'sha512-x' };
  expect(
    wrongIn(
      {
        'packages/core': {},
        'node_modules/good': { ...hash, resolved: `${REGISTRY}good/-/good-1.0.0.tgz` },
        'node_modules/node': { ...hash, hasInstallScript: true, dev: true },
        'node_modules/@holdfast/core': hash,
        'node_modules/a': {},
        'node_modules/b': { ...hash, resolved: 'http://evil.example/b.tgz' },
        'node_modules/c/node_modules/d': { ...hash, hasInstallScript: true },
        'node_modules/c/node_modules/node': { ...hash, hasInstallScript: true },
      },
      new Set(['node']),
    ),
  ).toEqual([
    'node_modules/@holdfast/core is not ours',
    'node_modules/a has no hash',
    'node_modules/b is from http://evil.example/b.tgz',
    'node_modules/c/node_modules/d runs when installed',
    'node_modules/c/node_modules/node runs when installed',
  ]);
});
