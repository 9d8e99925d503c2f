import { defineConfig } from 'vitest/config';

export default defineConfig({
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
