import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * The layer table of docs/ARCHITECTURE.md, enforced. A file belongs to the first row whose pattern it matches; it may
 * import only what that row allows. The failure names the file, the import and the broken rule.
 */
interface Layer {
  readonly name: string;
  readonly files: RegExp;
  /** Names of layers whose files it may import. */
  readonly mayImport: readonly string[];
  /** Packages it may import by name, as exact names or patterns. */
  readonly packages: readonly RegExp[];
  /** Layers of which it may import types only. */
  readonly typesOnly?: readonly string[];
}

const CORE_RULES = 'core 0: faults, units, limits, JSON profile';
const CORE_MODEL = 'core 1: ids, events, schema, fold, merge, digest';
const CORE_MACHINES = 'core 2: machines, protocol';
const PORTS = 'core P: port types';
const REPLICA_ENGINE = '3: replica engine';
const LEDGER_ENGINE = '3: ledger engine';
const REPLICA_ADAPTERS = '4: replica adapters';
const LEDGER_ADAPTERS = '4: ledger adapters';
const REPLICA_BINDINGS = '5: replica bindings and composition roots';
const LEDGER_BINDINGS = '5: ledger composition roots';
const CLI = '6: command line';

const CORE = [CORE_RULES, CORE_MODEL, CORE_MACHINES, PORTS];

const LAYERS: readonly Layer[] = [
  {
    name: CORE_RULES,
    files: /^packages\/core\/src\/(limits|faults|json|utf8|canonical|parse)\.ts$/,
    mayImport: [CORE_RULES],
    packages: [],
  },
  { name: PORTS, files: /^packages\/core\/src\/ports\.ts$/, mayImport: CORE, packages: [] },
  {
    name: CORE_MACHINES,
    files: /^packages\/core\/src\/(machines\/.*|protocol.*|decode.*)\.ts$/,
    mayImport: CORE,
    packages: [],
  },
  {
    name: 'core entry',
    files: /^packages\/core\/src\/index\.ts$/,
    mayImport: CORE,
    packages: [],
  },
  {
    name: CORE_MODEL,
    files: /^packages\/core\/src\/.*\.ts$/,
    mayImport: [CORE_RULES, CORE_MODEL],
    typesOnly: [PORTS],
    packages: [],
  },
  {
    name: REPLICA_ENGINE,
    files: /^packages\/replica\/src\/engine\/.*\.ts$/,
    mayImport: [REPLICA_ENGINE],
    packages: [/^@holdfast\/core$/],
  },
  {
    name: LEDGER_ENGINE,
    files: /^packages\/ledger\/src\/engine\/.*\.ts$/,
    mayImport: [LEDGER_ENGINE],
    packages: [/^@holdfast\/core$/],
  },
  {
    name: REPLICA_ADAPTERS,
    files: /^packages\/replica\/src\/adapters\/.*\.ts$/,
    mayImport: [REPLICA_ADAPTERS, REPLICA_ENGINE],
    packages: [/^@holdfast\/core$/, /^node:/, /^ws$/],
  },
  {
    name: LEDGER_ADAPTERS,
    files: /^packages\/ledger\/src\/(adapters|stores)\/.*\.ts$/,
    mayImport: [LEDGER_ADAPTERS, LEDGER_ENGINE],
    packages: [/^@holdfast\/core$/, /^node:/, /^pg$/],
  },
  {
    name: REPLICA_BINDINGS,
    files: /^packages\/replica\/src\/.*\.ts$/,
    mayImport: [REPLICA_BINDINGS, REPLICA_ADAPTERS, REPLICA_ENGINE],
    packages: [/^@holdfast\/(core|ledger\/testing)$/, /^node:/, /^kysely(\/.*)?$/, /^uuid$/],
  },
  {
    name: LEDGER_BINDINGS,
    files: /^packages\/ledger\/src\/.*\.ts$/,
    mayImport: [LEDGER_BINDINGS, LEDGER_ADAPTERS, LEDGER_ENGINE],
    packages: [/^@holdfast\/core$/, /^node:/, /^(hono|@hono\/node-server|ws|jose|pino|prom-client|uuid)(\/.*)?$/],
  },
  {
    name: CLI,
    files: /^packages\/cli\/.*\.ts$/,
    mayImport: [CLI],
    packages: [/^@holdfast\/(core|replica|ledger)(\/[a-z]+)?$/, /^node:/, /^(commander|ws|kysely)(\/.*)?$/],
  },
];

const ROOT = resolve(import.meta.dirname, '..');
const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?(?:[^'"`;]*?\s+from\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g;

function sourceFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter(
      (entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.(test|test-d|fixture|e2e)\.ts$/.test(entry.name),
    )
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((file) => !file.includes('node_modules'));
}

const layerOf = (file: string): Layer | undefined => LAYERS.find((layer) => layer.files.test(file));

/** Every broken rule in the given sources, as sentences. */
export function brokenRules(sources: ReadonlyMap<string, string>): string[] {
  const broken: string[] = [];
  for (const [file, text] of sources) {
    const layer = layerOf(file);
    if (!layer) {
      broken.push(`${file} belongs to no layer of the table in tests/import-graph.test.ts`);
      continue;
    }
    for (const match of text.matchAll(IMPORT)) {
      const typeOnly = match[2] !== undefined;
      const target = (match[3] ?? match[4]) as string;
      if (!target.startsWith('.')) {
        if (!layer.packages.some((allowed) => allowed.test(target)))
          broken.push(`${file} imports ${target}: layer "${layer.name}" may not import that package`);
        continue;
      }
      const imported = relative(ROOT, resolve(ROOT, dirname(file), target));
      const other = layerOf(imported);
      if (!other) broken.push(`${file} imports ${imported}, which belongs to no layer`);
      else if (layer.mayImport.includes(other.name) || layer.name === other.name) continue;
      else if (typeOnly && layer.typesOnly?.includes(other.name)) continue;
      else broken.push(`${file} imports ${imported}: layer "${layer.name}" may not import layer "${other.name}"`);
    }
  }
  return broken;
}

function readSources(): Map<string, string> {
  const files = ['packages/core/src', 'packages/replica/src', 'packages/ledger/src', 'packages/cli/src'].flatMap(
    sourceFiles,
  );
  return new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
}

test('[AR1] every import obeys the layer table', () => {
  const sources = readSources();
  expect(sources.size).toBeGreaterThan(20);
  expect(brokenRules(sources)).toEqual([]);
});

test('[AR1] a broken layer is named with its file, its import and its rule', () => {
  const bad = new Map([
    ['packages/core/src/merge.ts', "import { readFileSync } from 'node:fs';\n"],
    ['packages/core/src/json.ts', "import { fold } from './fold.ts';\n"],
    ['packages/ledger/src/engine/append.ts', "import { commit } from '../../../replica/src/engine/commit.ts';\n"],
    ['packages/replica/src/engine/loop.ts', "import { DatabaseSync } from 'node:sqlite';\n"],
  ]);
  expect(brokenRules(bad)).toEqual([
    'packages/core/src/merge.ts imports node:fs: layer "core 1: ids, events, schema, fold, merge, digest" may not import that package',
    'packages/core/src/json.ts imports packages/core/src/fold.ts: layer "core 0: faults, units, limits, JSON profile" may not import layer "core 1: ids, events, schema, fold, merge, digest"',
    'packages/ledger/src/engine/append.ts imports packages/replica/src/engine/commit.ts: layer "3: ledger engine" may not import layer "3: replica engine"',
    'packages/replica/src/engine/loop.ts imports node:sqlite: layer "3: replica engine" may not import that package',
  ]);
});

/** Code of core and the engines, line by line, without comments. */
function codeWithoutPlatform(): readonly (readonly [place: string, code: string])[] {
  const engines = /^packages\/(core|replica\/src\/engine|ledger\/src\/engine)\//;
  return [...readSources()]
    .filter(([file]) => engines.test(file))
    .flatMap(([file, text]) =>
      text.split('\n').map((line, at) => {
        const code = line
          .replace(/\/\/.*$/, '')
          .replace(/^\s*\*.*$/, '')
          .replace(/^\s*\/\*.*$/, '');
        return [`${file}:${at + 1}`, code] as const;
      }),
    );
}

test('[AR2] core and the engines touch no platform global', () => {
  const globals =
    /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|setImmediate|queueMicrotask|performance\.|crypto\.|process\.|Buffer\.|console\.|globalThis|(?<![.\w])fetch\(|TextEncoder|TextDecoder|window\.|navigator\.)/;
  const found = codeWithoutPlatform().filter(([, code]) => globals.test(code));
  expect(found).toEqual([]);
});

/**
 * What answers otherwise in another language, zone or engine, or at another time: no fold may ask it, nor in SQL.
 */
const ELSEWHERE_OTHERWISE =
  /localeCompare|\btoLocale\w|\bIntl\b|\.get(FullYear|Month|Date|Day|Hours|Minutes|Seconds|TimezoneOffset)\(|\bnew Date(?!\()|(?<!new )(?<![\w.])Date\(|\bMath\.(random|a?(sin|cos|tan)h?|atan2|exp|expm1|log|log10|log1p|log2|cbrt|hypot|pow)\(|\brandom(blob)?\(\)|\bCURRENT_(TIME|DATE|TIMESTAMP)\b|\(\s*'now'|\b(strftime|julianday|unixepoch)\(/;

test('[F131 AR2 F44] nothing in core and the engines asks for a language, a zone, the time, dice, or a function that engines round as they like', () => {
  const found = codeWithoutPlatform().filter(([, code]) => ELSEWHERE_OTHERWISE.test(code));
  expect(found).toEqual([]);
  for (const bad of [
    'names.sort((a, b) => a.localeCompare(b))',
    'const shown = (1).toLocaleString();',
    'new Intl.Collator().compare',
    'at.getTimezoneOffset()',
    'const at = new Date;',
    'const at = Date();',
    'Math.random()',
    'Math.pow(2, 0.5)',
    '`SELECT random()`',
    '`DEFAULT CURRENT_TIMESTAMP`',
    "`SELECT datetime('now')`",
  ])
    expect([bad, ELSEWHERE_OTHERWISE.test(bad)]).toEqual([bad, true]);
  for (const good of ['new Date(clock.now())', 'names.sort()', 'Math.floor(2 ** 3)', 'instant instanceof Date'])
    expect([good, ELSEWHERE_OTHERWISE.test(good)]).toEqual([good, false]);
});
