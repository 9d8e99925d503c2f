import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { SeedOptions, SeedResult } from './run.ts';

/** Runs seeds on every core. A worker that dies, or comes to no end, is a failure of its seed, and is replaced. */
export interface Pool {
  /** Takes seeds until there is none; tells each result as it comes, in no order. */
  run(seeds: Iterator<number>, options: SeedOptions, tell: (result: SeedResult) => void): Promise<void>;
}

/** A world takes about a second. One that turns in a circle would turn for ever, and nobody would hear of it. */
const HANGS_AFTER_MS = 10 * 60_000;

export function createPool({
  size = availableParallelism(),
  hangsAfterMs = HANGS_AFTER_MS,
  start = (): Worker => new Worker(new URL('worker.ts', import.meta.url)),
} = {}): Pool {
  return {
    run: async (seeds, options, tell) => {
      const asked = { options, hangsAfterMs, start };
      await Promise.all(Array.from({ length: size }, () => work(seeds, asked, tell)));
    },
  };
}

interface Asked {
  readonly options: SeedOptions;
  readonly hangsAfterMs: number;
  readonly start: () => Worker;
}

async function work(seeds: Iterator<number>, asked: Asked, tell: (result: SeedResult) => void): Promise<void> {
  let worker = asked.start();
  for (let next = seeds.next(); next.done !== true; next = seeds.next()) {
    const seed = next.value;
    try {
      tell(await ask(worker, seed, asked));
    } catch (cause) {
      tell(died(seed, cause));
      await worker.terminate();
      worker = asked.start();
    }
  }
  await worker.terminate();
}

function ask(worker: Worker, seed: number, { options, hangsAfterMs }: Asked): Promise<SeedResult> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
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
    const timer = setTimeout(() => onError(new Error(`it came to no end in ${hangsAfterMs} ms`)), hangsAfterMs);
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
