import { readFileSync, renameSync, writeFileSync } from 'node:fs';

/**
 * What the file of a workspace is known to hold, kept beside it: per log identity a head that was durable. A hint for the
 * next start only: a file that holds less, or other chains, was rewound while nobody looked, and begins a new epoch
 * (DG3). It may be older than the file, never newer; losing it costs one needless epoch and nothing else.
 */
export interface Timeline {
  readonly workspace: string;
  readonly createdAt: string;
  readonly heads: Readonly<Record<string, { readonly version: number; readonly chain: string }>>;
}

export function readTimeline(path: string): Timeline | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return null;
  }
  try {
    const value = JSON.parse(text) as Timeline;
    return typeof value.workspace === 'string' && typeof value.heads === 'object' && value.heads !== null
      ? value
      : null;
  } catch {
    return null;
  }
}

/** Whole or not at all: a reader never sees half of it. */
export function writeTimeline(path: string, timeline: Timeline): void {
  const beside = `${path}.new`;
  writeFileSync(beside, JSON.stringify(timeline), { mode: 0o600 });
  renameSync(beside, path);
}

export interface KnownLog {
  readonly identity: string;
  readonly head: number;
  chainAt(version: number): string | null;
}

/** Why this log needs a new epoch, or null when it continues what was known. */
export function breakIn(timeline: Timeline | null, log: KnownLog): string | null {
  if (timeline === null) return log.head === 0 ? null : 'timeline-unknown';
  const known = timeline.heads[log.identity];
  if (known === undefined || known.version === 0) return null;
  return log.chainAt(known.version) === known.chain ? null : 'rewound';
}
