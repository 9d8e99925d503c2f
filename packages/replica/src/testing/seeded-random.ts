import type { Random } from '@holdfast/core';

/**
 * A seeded generator (sfc32 by Chris Doty-Humphrey, public domain design): the same seed gives the same bytes on every
 * machine. For worlds and tests; never for salts of real events.
 */
export interface SeededRandom extends Random {
  /** A whole number in [0, below). */
  below(below: number): number;
  pick<T>(items: readonly T[]): T;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** An independent generator for one part of a world, so that one part's draws never shift another's. */
  fork(name: string): SeededRandom;
}

function hashName(seed: number, name: string): number {
  let hash = (seed ^ 0x9e3779b9) >>> 0;
  for (let at = 0; at < name.length; at += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x85ebca6b) >>> 0;
    hash = (hash ^ (hash >>> 13)) >>> 0;
  }
  return hash >>> 0;
}

export function createSeededRandom(seed: number): SeededRandom {
  let a = 0x2545f491 ^ seed;
  let b = 0x6c078965 ^ (seed * 31);
  let c = 0x9e3779b9 ^ (seed * 131);
  let counter = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11) | 0;
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let round = 0; round < 15; round += 1) next();
  const unit = (): number => next() / 4_294_967_296;
  const below = (limit: number): number => Math.floor(unit() * limit);
  return {
    bytes: (length) => Uint8Array.from({ length }, () => next() & 0xff),
    unit,
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    chance: (probability) => unit() < probability,
    fork: (name) => createSeededRandom(hashName(seed, name)),
  };
}
