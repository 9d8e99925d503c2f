import { parentPort } from 'node:worker_threads';
import { runSeed, type SeedOptions } from './run.ts';

/** One seed after the other, as the main thread names them. */
parentPort?.on('message', async ({ seed, options }: { readonly seed: number; readonly options: SeedOptions }) => {
  parentPort?.postMessage(await runSeed(seed, options));
});
