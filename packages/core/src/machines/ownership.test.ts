import { describe, expect, test } from 'vitest';
import {
  isSteady,
  mayEnter,
  mayStart,
  OWNERSHIP_GRID,
  type OwnerMode,
  type OwnershipPlace,
  type OwnershipSignal,
  ownershipRow,
  readOwnership,
  sourceOwner,
  stepOwnership,
} from './ownership.ts';

const PLACES = Object.keys(OWNERSHIP_GRID) as OwnershipPlace[];
const SIGNALS = Object.keys(OWNERSHIP_GRID.host) as OwnershipSignal[];
const OWNERS: readonly OwnerMode[] = ['host', 'browser-gateway'];

function reachable(from: OwnershipPlace, signals: readonly OwnershipSignal[]): Set<OwnershipPlace> {
  const found = new Set([from]);
  for (const place of found)
    for (const signal of signals) {
      const step = stepOwnership(place, signal);
      if (step.move === 'to') found.add(step.place);
    }
  return found;
}

describe('ownership', () => {
  test('[OW1] every place is reachable from every other', () => {
    for (const place of PLACES) expect(reachable(place, SIGNALS)).toEqual(new Set(PLACES));
  });

  test('[OW1] a transfer ends by itself, and also by force alone or abort alone', () => {
    const steady = (places: Set<OwnershipPlace>): boolean => [...places].some(isSteady);
    for (const place of PLACES.filter((one) => !isSteady(one))) {
      expect(steady(reachable(place, ['drain', 'drained', 'switch']))).toBe(true);
      expect(steady(reachable(place, ['force']))).toBe(true);
      expect(steady(reachable(place, ['abort']))).toBe(true);
    }
  });

  test('[OW2] the owner changes exactly where the generation is raised', () => {
    for (const place of PLACES)
      for (const signal of SIGNALS) {
        const step = stepOwnership(place, signal);
        if (step.move !== 'to') continue;
        const ownerChanges = isSteady(step.place) && sourceOwner(step.place) !== sourceOwner(place);
        expect(step.effects.includes('raise-generation')).toBe(ownerChanges);
        if (!isSteady(step.place)) expect(sourceOwner(step.place)).toBe(sourceOwner(place));
      }
  });

  test('[OW1] nothing is switched before it is drained, unless by force, which ends what is active first', () => {
    for (const place of PLACES)
      for (const signal of SIGNALS) {
        const step = stepOwnership(place, signal);
        if (step.move !== 'to' || !step.effects.includes('raise-generation')) continue;
        expect(signal === 'force' || place.endsWith('switching')).toBe(true);
        if (signal === 'force') expect(step.effects[0]).toBe('end-active-permits');
      }
  });

  test('[OW1] a step may be repeated after a kill: a transfer to the same owner goes on where it stood', () => {
    for (const place of PLACES.filter((one) => !isSteady(one))) {
      const [same, other] = place.startsWith('to-host')
        ? (['prepare-host', 'prepare-browser'] as const)
        : (['prepare-browser', 'prepare-host'] as const);
      expect(stepOwnership(place, same).move).toBe('stay');
      expect(stepOwnership(place, other).move).toBe('refused');
      expect(stepOwnership(place, 'host-restarted').move).toBe('stay');
      expect(readOwnership(ownershipRow(place))).toBe(place);
    }
  });

  test('[OW2 PM1] at most one owner may start requests, and none during a transfer', () => {
    for (const place of PLACES)
      expect(OWNERS.filter((owner) => mayStart(place, owner))).toEqual(isSteady(place) ? [place] : []);
  });

  test('[PM5] at most one owner may enter a local commit: the steady one, or the source until nothing is active', () => {
    for (const place of PLACES)
      expect(OWNERS.filter((owner) => mayEnter(place, owner))).toEqual(
        place.endsWith('switching') ? [] : [sourceOwner(place)],
      );
  });

  test('[PM13] a row that cannot be read is a transfer: nobody starts, and there is a way out', () => {
    const odd = [
      { mode: 'host', transition: 'dancing', target: null, phase: null },
      { mode: 'cloud', transition: 'idle', target: null, phase: null },
      { mode: 'transitioning-to-browser', transition: 'transferring-ownership', target: null, phase: 'x' },
      { mode: null, transition: null, target: 'browser-gateway', phase: 'preparing' },
    ];
    for (const row of odd) {
      const place = readOwnership(row);
      expect(isSteady(place)).toBe(false);
      expect([...reachable(place, ['abort'])].some(isSteady)).toBe(true);
    }
  });
});
