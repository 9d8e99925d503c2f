import { expect, test } from 'vitest';
import { AskedWrongly, readOptions, wholeNumber } from './asked-wrongly.ts';

test('[P8] what a run is asked wrongly is said before it runs, not found out by half of it', () => {
  const config = { options: { seeds: { type: 'string' } } } as const;
  expect(readOptions({ ...config, args: ['--seeds', '3'] })).toMatchObject({ seeds: '3' });
  expect(() => readOptions({ ...config, args: ['--seed', '3'] })).toThrow(AskedWrongly);
  expect(wholeNumber('seeds', '3', 1)).toBe(3);
  for (const text of ['x', '', '0', '1.5', '1e99', '-1'])
    expect(() => wholeNumber('seeds', text, 1)).toThrow(AskedWrongly);
});
