import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { SeedOptions, SeedResult } from './run.ts';

/** Runs seeds on every core. A worker that dies is a failure of its seed, and is replaced. */
export interface Pool {
  /** Takes seeds until there is none; tells each result as it comes, in no order. */
  run(seeds: Iterator<number>, options: SeedOptions, tell: (result: SeedResult) => void): Promise<void>;
}

export function createPool(size = availableParallelism()): Pool {
  return {
    run: async (seeds, options, tell) => {
      await Promise.all(Array.from({ length: size }, () => work(seeds, options, tell)));
    },
  };
}

async function work(seeds: Iterator<number>, options: SeedOptions, tell: (result: SeedResult) => void): Promise<void> {
  let worker = start();
  for (let next = seeds.next(); next.done !== true; next = seeds.next()) {
    const seed = next.value;
    try {
      tell(await ask(worker, seed, options));
    } catch (cause) {
      tell(died(seed, cause));
      await worker.terminate();
      worker = start();
    }
  }
  await worker.terminate();
}

const start = (): Worker => new Worker(new URL('worker.ts', import.meta.url));

function ask(worker: Worker, seed: number, options: SeedOptions): Promise<SeedResult> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      worker.off('message', onMessage);
      worker.off('error', onError);
      worker.off('exit', onExit);
    };
    const onMessage = (result: SeedResult) => {
      stop();
      resolve(result);
    };
    const onError = (cause: unknown) => {
      stop();
      reject(cause);
    };
    const onExit = (code: number) => onError(new Error(`the worker ended with ${code}`));
    worker.on('message', onMessage);
    worker.on('error', onError);
    worker.on('exit', onExit);
    worker.postMessage({ seed, options });
  });
}

const died = (seed: number, cause: unknown): SeedResult => ({
  seed,
  faults: [],
  lasting: null,
  violations: [{ invariant: 'I29', what: `the world died: ${cause instanceof Error ? cause.stack : String(cause)}` }],
  steps: 0,
  simulatedMs: 0,
  counts: {},
  traceHash: '',
  cells: [],
  unlisted: [],
  hasCoda: false,
});
