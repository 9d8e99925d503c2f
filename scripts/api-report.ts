/**
 * Writes the public surface of each published package to `api/`, as the compiler declares it: one file per package
 * with every declaration reachable from its entries. A change of the surface is then a diff that a reviewer sees.
 *
 *   npm run api             writes
 *   npm run api -- --check  exits 1 if the files differ
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const PACKAGES = ['core', 'replica', 'ledger'] as const;
const IMPORTED = /(?:from\s+|import\()\s*['"](\.[^'"]+)['"]/g;

/** Declaration files reachable from `entry`, in the order in which they are first imported. */
function reachable(entry: string, seen: string[] = []): string[] {
  if (seen.includes(entry) || !existsSync(entry)) return seen;
  seen.push(entry);
  for (const [, target] of readFileSync(entry, 'utf8').matchAll(IMPORTED))
    reachable(resolve(dirname(entry), (target as string).replace(/\.tsx?$/, '.d.ts')), seen);
  return seen;
}

function declare(outDir: string): void {
  const project = join(outDir, 'tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({
      extends: join(ROOT, 'tsconfig/all.json'),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        removeComments: false,
        rootDir: join(ROOT, 'packages'),
        outDir,
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: PACKAGES.map((name) => join(ROOT, `packages/${name}/src`)),
      exclude: ['test', 'test-d', 'fixture'].map((kind) => join(ROOT, `packages/**/*.${kind}.ts`)),
    }),
  );
  const { status, stdout } = spawnSync('tsc', ['-p', project], { encoding: 'utf8', cwd: ROOT });
  if (status !== 0) throw new Error(`The packages do not compile:\n${stdout}`);
}

function entriesOf(name: string): string[] {
  const manifest = JSON.parse(readFileSync(join(ROOT, `packages/${name}/package.json`), 'utf8')) as {
    exports: Record<string, string>;
  };
  return Object.values(manifest.exports).filter((path) => path.endsWith('.ts'));
}

function report(name: string, outDir: string): string {
  const seen: string[] = [];
  for (const entry of entriesOf(name)) reachable(join(outDir, name, entry.replace(/\.ts$/, '.d.ts')), seen);
  const parts = seen.map((file) => `// ${relative(outDir, file)}\n${readFileSync(file, 'utf8').trim()}\n`);
  return `// The public surface of @holdfast/${name}. Made by \`npm run api\`; do not edit.\n\n${parts.join('\n')}`;
}

const check = process.argv.includes('--check');
const outDir = mkdtempSync(join(tmpdir(), 'holdfast-api-'));
try {
  declare(outDir);
  mkdirSync(join(ROOT, 'api'), { recursive: true });
  let differs = false;
  for (const name of PACKAGES) {
    const file = join(ROOT, `api/${name}.d.ts.txt`);
    const text = report(name, outDir);
    if (check) {
      const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
      if (before === text) continue;
      differs = true;
      console.error(`api/${name}.d.ts.txt is not what the code declares. Run \`npm run api\` and read the difference.`);
    } else {
      writeFileSync(file, text);
      console.log(`api/${name}.d.ts.txt  ${text.split('\n').length} lines`);
    }
  }
  process.exitCode = differs ? 1 : 0;
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
