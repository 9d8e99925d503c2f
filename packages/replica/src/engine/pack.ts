import {
  bytesToHex,
  canonical,
  decodeEventDraft,
  decodeUtf8,
  type EventDraft,
  encodeUtf8,
  fail,
  isPlainObject,
  type Json,
  jsonProblem,
  LIMITS,
  type Outcome,
  ok,
  parseJson,
} from '@holdfast/core';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import type { OutboxFrame } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

/** A pack: everything unsent, sealed into one file that another replica of the same account and workspace takes (OB7). */
const KIND = 'holdfast-pack';
const FORMAT = 1;

export function packOf(store: ReplicaStore): Uint8Array {
  const owner =
    store.database
      .prepare('SELECT ledger, account, workspace, replica_id FROM main.hf_coordinator WHERE one = 1')
      .get() ?? {};
  const batches = store.database
    .prepare(
      'SELECT log, action_id AS actionId, request_id AS requestId, state, drafts, frame, identity, label, created_at AS createdAt FROM main.hf_outbox ORDER BY seq',
    )
    .all()
    .map((row) => ({
      ...row,
      drafts: JSON.parse(row['drafts'] as string) as Json,
      frame: JSON.parse(row['frame'] as string) as Json,
    }));
  const body = JSON.stringify({ kind: KIND, format: FORMAT, packedAt: store.nowIso(), owner: { ...owner }, batches });
  const seal = bytesToHex(store.platform.digest.sha256(body));
  return encodeUtf8(`${seal}\n${body}\n`);
}

interface PackedBatch {
  readonly log: string;
  readonly actionId: string;
  readonly requestId: string;
  readonly drafts: readonly EventDraft[];
  readonly frame: OutboxFrame;
  readonly identity: string;
  readonly label: string | null;
  readonly createdAt: number;
}

/**
 * Takes a pack's batches into the outbox, in their order and under their ids. A batch that is here already, in the outbox
 * or confirmed, is not taken twice.
 */
export function unpackInside(
  parts: { readonly store: ReplicaStore; readonly entities: LocalEntities; readonly outbox: Outbox },
  bytes: Uint8Array,
): Outcome<{ readonly batches: number; readonly already: number }> {
  const { store, entities, outbox } = parts;
  const text = decodeUtf8(bytes);
  if (!text.ok) return text;
  const at = text.value.indexOf('\n');
  const body = text.value.slice(at + 1).trimEnd();
  if (bytesToHex(store.platform.digest.sha256(body)) !== text.value.slice(0, at))
    return fail('malformed', { reason: 'this is no whole pack: its seal does not fit' });
  const json = parseJson(body, {
    bytesMax: Number.MAX_SAFE_INTEGER,
    depthMax: LIMITS.jsonDepthMax + LIMITS.frameDepthMax,
  });
  if (!json.ok) return json;
  const packed = json.value;
  if (
    !isPlainObject(packed) ||
    packed['kind'] !== KIND ||
    packed['format'] !== FORMAT ||
    !Array.isArray(packed['batches'])
  )
    return fail('malformed', { reason: 'this is no pack of a format that is known here' });
  const owner = isPlainObject(packed['owner']) ? packed['owner'] : {};
  const here = store.database.prepare('SELECT account, workspace FROM main.hf_coordinator WHERE one = 1').get();
  if (owner['account'] !== here?.['account'] || owner['workspace'] !== here?.['workspace'])
    return fail('other-account', { account: owner['account'] ?? null, workspace: owner['workspace'] ?? null });
  let taken = 0;
  let already = 0;
  for (const [at, packedBatch] of packed['batches'].entries()) {
    const problem = batchProblem(packedBatch);
    if (problem !== null) return fail('malformed', { reason: `batch ${at} of this pack cannot be read: ${problem}` });
    const batch = packedBatch as unknown as PackedBatch;
    if (
      outbox.byAction(batch.actionId) !== undefined ||
      store.database.prepare('SELECT 1 FROM main.hf_outcome WHERE action_id = ?').get(batch.actionId) !== undefined
    ) {
      already += 1;
      continue;
    }
    const { log, actionId, requestId, identity, label, createdAt } = batch;
    const row = outbox.insert({
      seq: outbox.edge('last'),
      log,
      actionId,
      requestId,
      draftTexts: batch.drafts.map((draft) => canonical(draft as unknown as Json)),
      frame: batch.frame,
      identity,
      label,
      createdAt,
    });
    outbox.putBack(entities, row);
    taken += 1;
  }
  store.tracker.outbox = true;
  return ok({ batches: taken, already });
}

/** Sealed only says that nothing was lost on the way: who packed it may have been another version, or no Holdfast at all. */
function batchProblem(batch: Json): string | null {
  if (!isPlainObject(batch)) return 'it is no object';
  if (jsonProblem(batch, '', -LIMITS.frameDepthMax) !== null) return 'it holds what is no JSON of ours';
  for (const name of ['log', 'actionId', 'requestId', 'identity'])
    if (typeof batch[name] !== 'string') return `${name} is no text`;
  if (batch['label'] !== null && typeof batch['label'] !== 'string') return 'label is no text';
  if (!Number.isSafeInteger(batch['createdAt'])) return 'createdAt is no instant';
  const { drafts, frame } = batch;
  if (!Array.isArray(drafts) || drafts.length === 0) return 'drafts is no list of events';
  for (const draft of drafts) {
    const decoded = decodeEventDraft(draft);
    if (!decoded.ok) return `an event of it: ${String(decoded.fault.facts?.['reason'] ?? decoded.fault.code)}`;
  }
  return frameProblem(frame);
}

function frameProblem(frame: Json | undefined): string | null {
  if (!isPlainObject(frame)) return 'frame is no object';
  const { merge, needs = [], requires = [], expectedLogVersion = 0, scope = 'log' } = frame;
  if (merge !== 'fields' && merge !== 'author') return 'frame names no merge that is known here';
  if (!isTexts(needs)) return 'frame.needs is no list of ids';
  if (!Array.isArray(requires) || !requires.every((one) => isTexts(one) && one.length === 2))
    return 'frame.requires is no list of a type and an id each';
  return Number.isSafeInteger(expectedLogVersion) && scope === 'log' ? null : 'frame says what is not known here';
}

const isTexts = (json: Json): json is readonly string[] =>
  Array.isArray(json) && json.every((one) => typeof one === 'string');
