import { describe, expect, test } from 'vitest';
import type { ConfirmedEvent } from './entity-facts.ts';
import type { Change } from './events.ts';
import type { JsonObject } from './json.ts';
import { writerOf } from './writers.ts';

/** Events of an entity after version 1, each by its author. */
const events = (...done: readonly (readonly [actor: string, change: Change | null, meta?: JsonObject])[]) =>
  done.map(
    ([actor, change, meta], at): ConfirmedEvent => ({
      id: `e${at}`,
      base: at + 1,
      entityVersion: at + 2,
      actor,
      recordedAt: `2026-01-0${at + 1}T00:00:00.000Z`,
      change,
      ...(meta === undefined ? {} : { meta }),
    }),
  );
const set = (fields: JsonObject): Change => ({ op: 'update', set: fields });
const restore = (fields: JsonObject): Change => ({ op: 'restore', fields });
const DELETE: Change = { op: 'delete' };

describe('who gave a field its value', () => {
  test('[OB6] is the newest who changed it, and not who changed the entity last', () => {
    const all = events(['ben', set({ title: 'B' })], ['cleo', set({ body: 'c' })], ['dora', set({ title: 'B' })]);
    expect(writerOf('title', all, 'A')?.actor).toBe('ben');
    expect(writerOf('body', all, undefined)?.actor).toBe('cleo');
    expect(writerOf('other', all, 1)).toBeUndefined();
  });

  test('[OB6] counts, elements and unset fields have writers, too', () => {
    const all = events(
      ['ben', { op: 'update', inc: { votes: 1 } }],
      ['cleo', { op: 'update', add: { labels: ['x'] } }],
      ['dora', { op: 'update', unset: ['body'] }],
      ['eva', null],
    );
    expect(['votes', 'labels', 'body'].map((field) => writerOf(field, all, undefined)?.actor)).toEqual([
      'ben',
      'cleo',
      undefined,
    ]);
    expect(writerOf('body', all, 'was')?.actor).toBe('dora');
  });

  test('[MG5 OB6] a restore wrote what it changed, and what it carries along stays who wrote it', () => {
    const all = events(
      ['ben', set({ title: 'B' })],
      ['cleo', DELETE],
      ['ana', restore({ title: 'B', body: 'a', place: 1 })],
    );
    expect(
      ['title', 'body', 'place'].map((field) => writerOf(field, all, field === 'place' ? 1 : undefined)?.actor),
    ).toEqual(['ben', 'ana', undefined]);
  });

  test('[MG5 OB6] a restore that says what was edited is believed, also where nobody knows what was before', () => {
    const mark = { holdfast: { under: 'keep', seen: 1, edited: ['body'] } };
    const all = events(['cleo', DELETE], ['ana', restore({ title: 'B', body: 'a' }), mark]);
    expect(['title', 'body'].map((field) => writerOf(field, all, undefined)?.actor)).toEqual([undefined, 'ana']);
  });
});
