import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { MUTATIONS } from './list.ts';
import { mutated, occurrences } from './mutation.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(resolve(ROOT, file), 'utf8');

test('[P1] every mutation finds its text exactly once, and puts other, parseable text there', () => {
  const stale = MUTATIONS.flatMap((mutation) => {
    const { name, file, find, replace } = mutation;
    const found = existsSync(resolve(ROOT, file)) ? occurrences(read(file), find) : 0;
    if (found !== 1) return [`${name}: its text stands ${found} times in ${file}`];
    if (find === replace) return [`${name}: changes nothing`];
    try {
      stripTypeScriptTypes(mutated(read(file), mutation));
      return [];
    } catch (cause) {
      return [`${name}: ${String(cause)}`];
    }
  });
  expect(stale).toEqual([]);
});

test('[P1] every mutation has a name of its own, says what is lost, and names tests that exist', () => {
  expect(MUTATIONS.length).toBeGreaterThanOrEqual(28);
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(MUTATIONS.length);
  for (const { name, fault, tests } of MUTATIONS) {
    expect(name).toMatch(/^[a-z][a-z-]*$/);
    expect(fault).toMatch(/\S\.$/);
    expect(tests.length).toBeGreaterThan(0);
    expect(tests.filter((file) => !existsSync(resolve(ROOT, file)))).toEqual([]);
  }
});

test('[P1] a text that stands there twice, or not at all, is no mutation', () => {
  const mutation = { name: 'one', fault: 'Nothing.', file: 'a.ts', find: 'b', replace: '$&', tests: [] };
  expect(mutated('abc', mutation)).toBe('a$&c');
  expect(() => mutated('abbc', mutation)).toThrow('2 times');
  expect(() => mutated('ac', mutation)).toThrow('0 times');
});
