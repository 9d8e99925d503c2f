import type { Clock } from '@holdfast/core';
import type { Subject } from './replica.ts';

export interface WritableSubject<T> extends Subject<T> {
  set(value: T): void;
}

/** A value that changes, and whoever wants to know. What a subscriber throws does not reach whoever sets. */
export function createSubject<T>(initial: T, clock: Clock): WritableSubject<T> {
  const subscribers = new Set<(value: T) => void>();
  let current = initial;
  return {
    get current() {
      return current;
    },
    set: (value) => {
      current = value;
      for (const run of [...subscribers]) {
        try {
          run(value);
        } catch (cause) {
          clock.soon(() => {
            throw cause;
          });
        }
      }
    },
    subscribe: (run) => {
      subscribers.add(run);
      return () => void subscribers.delete(run);
    },
  };
}
