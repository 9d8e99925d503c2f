import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The tasks that are written for React run without it: their elements are plain objects. */
const PLAIN_ELEMENTS = resolve(import.meta.dirname, 'tests/react-binding.fixture.ts');

export default defineConfig({
  resolve: { alias: [{ find: /^react(\/jsx(-dev)?-runtime)?$/, replacement: PLAIN_ELEMENTS }] },
  test: {
    include: [
      'packages/**/src/**/*.test.ts',
      'contract/**/*.test.ts',
      'simulation/**/*.test.ts',
      'scenarios/**/*.test.ts',
      'tests/**/*.test.ts',
      'docs/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    // Real processes, sockets and fsync share two cores with everything else.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    isolate: true,
  },
});
