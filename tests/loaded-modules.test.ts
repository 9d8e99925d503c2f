import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

/** Who asks for help, or about a schema, waits for no engine: a command loads what it needs when it runs. */
const ROOT = resolve(import.meta.dirname, '..');
const PROGRAM = join(import.meta.dirname, 'processes/loaded-modules.ts');
const PACKAGES = pathToFileURL(join(ROOT, 'packages/')).href;
const SCHEMA = join(ROOT, 'docs/tasks/schema.ts');

/** Folders of packages, by the URLs of their modules. */
const packagesOf = (urls: readonly string[]): readonly (string | undefined)[] => [
  ...new Set(
    urls
      .filter((url) => url.startsWith(PACKAGES))
      .map((url) => url.slice(PACKAGES.length).split('/')[0])
      .sort(),
  ),
];

test('[AR1] help, a wrong command, a question over HTTP and "schema check" load no engine; a command on a replica loads no ledger', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loaded-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // In this order, for what is loaded stays: what each loads that none before it did.
  const commands: readonly (readonly [args: string, code: number, ...packages: string[]])[] = [
    ['--help', 0, 'cli'],
    ['--version', 0],
    ['replica commit --help', 0],
    ['frobnicate', 2],
    ['ledger status --ledger http://127.0.0.1:9', 5],
    ['schema check SCHEMA --write', 0, 'cli', 'core'],
    ['schema print SCHEMA', 0],
    ['replica status', 2, 'cli', 'replica'],
    ['ledger usage --dir . --workspace none', 2, 'ledger'],
  ];
  const asked = JSON.stringify(
    commands.map(([args]) => args.split(' ').map((one) => (one === 'SCHEMA' ? SCHEMA : one))),
  );
  const { stdout, stderr } = spawnSync(process.execPath, [PROGRAM, asked], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  const told = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ code, loaded }, at) => [commands[at]?.[0], code, ...packagesOf(loaded)]);
  expect(told).toEqual(commands);
});
