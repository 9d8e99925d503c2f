import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** In the repository, or beside it: what a licence keeps out of it. */
const FOLDERS = ['../../data', '../../../shared/data', '../../../../shared/data'];

/** A file of real data, without its ending. Null, and said on the console, where it is not here. */
export function realFile(name: string, ending: 'jsonl.gz' | 'json.gz' = 'jsonl.gz'): string | null {
  const file = FOLDERS.map((folder) => resolve(import.meta.dirname, folder, `${name}.${ending}`)).find(existsSync);
  if (file === undefined) console.log(`skipped: ${name} is not here; its licence keeps it out of the repository`);
  return file ?? null;
}

/** Its records. */
export function realData<T>(name: string): readonly T[] | null {
  const file = realFile(name);
  if (file === null) return null;
  return gunzipSync(readFileSync(file))
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(withoutNul(line)) as T);
}

/** What one file of JSON holds. */
export function realJson<T>(name: string): T | null {
  const file = realFile(name, 'json.gz');
  return file === null ? null : (JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as T);
}

/** NUL is no text of the profile: an app strips it where text comes in. A backslash that is text itself, and "u0000" after it, stay. */
const withoutNul = (line: string): string => line.replace(/(\\\\)|\\u0000/g, '$1');
