/** A promise and the function that fulfils it. */
export interface Waiting<T = void> {
  readonly promise: Promise<T>;
  readonly done: (value: T) => void;
}

export function waiting<T = void>(): Waiting<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { promise, done: resolve };
}

export async function timed(run: () => Promise<unknown> | unknown): Promise<number> {
  const begun = performance.now();
  await run();
  return performance.now() - begun;
}
