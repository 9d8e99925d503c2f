import type { Fetch } from '@holdfast/core';
import type { Violation } from './violation.ts';
import type { Examined } from './world.ts';

/** A push as it left a device, kept to be sent once more, long after it was answered (F72). */
export interface SentPush {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const KEPT_MAX = 3;
const ANSWER_MS = 10_000;

/** Keeps the newest pushes that leave through it. */
export function keepingPushes(fetch: Fetch, kept: SentPush[]): Fetch {
  return (url, request) => {
    if (url.endsWith('/push') && request.body !== undefined) {
      kept.push({ url, headers: request.headers, body: request.body });
      if (kept.length > KEPT_MAX) kept.shift();
    }
    return fetch(url, request);
  };
}

interface Operation {
  readonly requestId: string;
}
interface Result extends Operation {
  readonly status: string;
  readonly firstVersion?: number;
}

/**
 * I04, I05: what is in the log already is pushed again, with the same bytes and with others. Either answer changes nothing,
 * the first names the versions that it has, and the second takes nothing. `firstVersions`: of each request id in the log.
 */
export async function checkRepeats(
  world: Examined,
  pushes: readonly SentPush[],
  firstVersions: ReadonlyMap<string, number>,
): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const push of pushes) {
    const { operations } = JSON.parse(push.body) as { readonly operations: readonly Operation[] };
    if (!operations.every(({ requestId }) => firstVersions.has(requestId))) continue;
    for (const { requestId, firstVersion } of await sendAgain(world, push, push.body))
      if (firstVersion !== undefined && firstVersion !== firstVersions.get(requestId))
        found.push({ invariant: 'I04', what: `${requestId} came again and is said to stand at ${firstVersion}` });
    const other = push.body.replace(
      /"salt":"[0-9a-f]/g,
      (salt) => salt.slice(0, -1) + (salt.endsWith('0') ? '1' : '0'),
    );
    for (const { requestId, status } of await sendAgain(world, push, other))
      if (status === 'accepted')
        found.push({ invariant: 'I05', what: `${requestId} came again with other bytes and was accepted` });
  }
  return found;
}

/** The results of the operations; none where the request as a whole was refused. */
export async function sendAgain(world: Examined, { url, headers }: SentPush, body: string): Promise<readonly Result[]> {
  const signal = { aborted: false, addEventListener: () => undefined, removeEventListener: () => undefined };
  // The ledger gathers what comes on the clock of the world: it answers once that moves.
  let text: string | null = null;
  const asked = world.ledger.fetch(url, { method: 'POST', headers, body, signal }).then(async (response) => {
    text = await response.text();
  });
  await world.time.until(() => text !== null, ANSWER_MS);
  await asked;
  const answer = JSON.parse(text ?? '{}') as { readonly results?: readonly Result[] };
  return answer.results ?? [];
}
