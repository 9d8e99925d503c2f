import { expect, test } from 'vitest';
import { isRefetchClass, liesAtOrBehind, obligationsOf, readObligationAction } from './obligation.ts';
import { OPERATION_CLASSES } from './permit.ts';

const at = (version: number, chain = `c${version}`) => ({ epoch: 'e', version, chain });

test('[PM7] push owes one replay per operation, dispatch one, every other class one refetch', () => {
  const permit = { operations: ['r1', 'r2'], commandId: 'c1' };
  expect(obligationsOf({ ...permit, class: 'push' }).map((one) => [one.identity, one.action])).toEqual([
    ['r1', 'replay-operation-then-reconcile'],
    ['r2', 'replay-operation-then-reconcile'],
  ]);
  expect(obligationsOf({ ...permit, class: 'dispatch' })).toEqual([
    { class: 'dispatch', action: 'replay-operation-then-reconcile', identity: 'c1' },
  ]);
  for (const operationClass of OPERATION_CLASSES) {
    if (operationClass === 'push' || operationClass === 'dispatch') continue;
    const owed = obligationsOf({ operations: [], commandId: null, class: operationClass });
    expect(owed.map((one) => [one.action, one.identity])).toEqual([['refetch-from-committed-cursor', '']]);
  }
});

test('[PM7 F166] what is owed always has a class whose completion settles it', () => {
  for (const operationClass of OPERATION_CLASSES)
    for (const owed of obligationsOf({ operations: ['r'], commandId: 'c', class: operationClass }))
      expect(isRefetchClass(owed.class)).toBe(owed.action === 'refetch-from-committed-cursor');
});

test('[PM7] a boundary lies behind by its version, and equals only with the same chain', () => {
  expect(liesAtOrBehind(at(3), at(4))).toBe(true);
  expect(liesAtOrBehind(at(4), at(4))).toBe(true);
  expect(liesAtOrBehind(at(5), at(4))).toBe(false);
  expect(liesAtOrBehind(at(4, 'other'), at(4))).toBe(false);
  expect(liesAtOrBehind(null, at(0))).toBe(true);
  expect(liesAtOrBehind(null, null)).toBe(true);
  expect(liesAtOrBehind(at(0), null)).toBe(false);
});

test('[PM7] a handshake boundary lies behind if that of each log still followed does', () => {
  expect(liesAtOrBehind({ main: at(3), team: at(9) }, { main: at(3), team: at(9) })).toBe(true);
  expect(liesAtOrBehind({ main: at(3), team: at(9) }, { main: at(5), team: at(8) })).toBe(false);
  expect(liesAtOrBehind({ main: at(3), gone: at(9) }, { main: at(5), later: at(1) })).toBe(true);
});

test('[PM13] what cannot be read lies nowhere, and is replayed', () => {
  for (const odd of ['x', 4, [at(1)], { version: -1 }, { version: '3' }, undefined])
    expect(liesAtOrBehind(odd, at(100))).toBe(false);
  expect(liesAtOrBehind(at(1), { version: 1.5 })).toBe(false);
  expect(readObligationAction('pray')).toBe('replay-operation-then-reconcile');
});
