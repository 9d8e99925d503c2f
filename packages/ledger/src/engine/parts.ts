import { LIMITS } from '@holdfast/core';

/**
 * How many events one part of an operation has, or null for an operation that travels whole (PG2). Every part of an
 * operation but the last has as many events, and none is over a page.
 */
export function partEventsOf(sizes: readonly number[]): number | null {
  const { pageEventsMax, pageBytesMax } = LIMITS;
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.length <= pageEventsMax && bytes <= pageBytesMax) return null;
  let events: number = pageEventsMax;
  while (events > 1 && !fits(sizes, events, pageBytesMax)) events /= 2;
  return events;
}

function fits(sizes: readonly number[], events: number, bytesMax: number): boolean {
  for (let from = 0; from < sizes.length; from += events) {
    let bytes = 0;
    for (let at = from; at < Math.min(from + events, sizes.length); at += 1) bytes += sizes[at] as number;
    if (bytes > bytesMax) return false;
  }
  return true;
}
