import { canonical } from './canonical.ts';
import type { Envelope, ErasedEvent, EventDraft, StoredEvent } from './events.ts';
import { DRAFT_KEYS, ENVELOPE_KEYS } from './events.ts';
import { bytesToHex, hexToBytes } from './ids.ts';
import type { Json } from './json.ts';
import type { Digest } from './ports.ts';

/**
 * Leaves, chain and attestation (DG1, DG4). Everything here is lower-case hex outside and bytes inside; what is hashed
 * is the canonical text, so a log's chain is the same wherever it is computed.
 */

/** chain(0) = SHA-256(log identity). */
export const chainStart = (identity: string, digest: Digest): string => bytesToHex(digest.sha256(hexToBytes(identity)));

/** leaf = SHA-256(salt ‖ canonical draft without its salt). */
export function leafOf(draft: EventDraft, digest: Digest): string {
  const { salt, ...rest } = draft;
  return bytesToHex(digest.sha256(hexToBytes(salt), canonical(rest as unknown as Json)));
}

/**
 * The leaf from a draft's canonical text, without parsing it. `salt` is followed by `type` in canonical order, and its
 * member is the last one of that shape that stands at the top: what comes after it are two short members without quotes
 * inside, so the last match is the draft's own.
 */
export const leafOfText = (draftText: string, digest: Digest): string => bytesToHex(leafBytes(draftText, digest));

function leafBytes(draftText: string, digest: Digest): Uint8Array {
  const at = draftText.lastIndexOf('"salt":"');
  const salt = draftText.slice(at + 8, at + 40);
  return digest.sha256(hexToBytes(salt), draftText.slice(0, at), draftText.slice(at + 42));
}

/** chain(n) = SHA-256(chain(n−1) ‖ leaf(n) ‖ canonical envelope). */
export const chainNext = (previous: string, leaf: string, envelopeText: string, digest: Digest): string =>
  bytesToHex(digest.sha256(hexToBytes(previous), hexToBytes(leaf), envelopeText));

/** The same for an event that is at hand, for whoever links many: bytes in, bytes out. */
export const chainLink = (previous: Uint8Array, draftText: string, envelopeText: string, digest: Digest): Uint8Array =>
  digest.sha256(previous, leafBytes(draftText, digest), envelopeText);

/** LG2: SHA-256 over the action id and the canonical drafts in order; the texts are self-delimiting JSON. */
export const operationIdentity = (actionId: string, draftTexts: readonly string[], digest: Digest): string =>
  bytesToHex(digest.sha256(`${canonical(actionId)}\n`, draftTexts.join('\n')));

/** DG4: what the ledger signs of a durable position. Identity and chain are fixed in length, so nothing can shift. */
export const attestOf = (key: Uint8Array, identity: string, version: number, chain: string, digest: Digest): string =>
  bytesToHex(digest.hmacSha256(key, hexToBytes(identity), `${version}\n`, hexToBytes(chain)));

/** Whether a position bears this log key's signature. Takes the same time wherever a forged one differs. */
export function verifyAttest(
  key: Uint8Array,
  position: { readonly identity: string; readonly version: number; readonly chain: string; readonly attest: string },
  digest: Digest,
): boolean {
  const expected = attestOf(key, position.identity, position.version, position.chain, digest);
  if (position.attest.length !== expected.length) return false;
  let difference = 0;
  for (let at = 0; at < expected.length; at += 1)
    difference |= expected.charCodeAt(at) ^ position.attest.charCodeAt(at);
  return difference === 0;
}

const DRAFT_KEY_SET: ReadonlySet<string> = new Set(DRAFT_KEYS);
const ENVELOPE_KEY_SET: ReadonlySet<string> = new Set(ENVELOPE_KEYS);

/** Takes a stored event apart: draft and envelope have disjoint keys. */
export function splitEvent(event: StoredEvent): { readonly draft: EventDraft; readonly envelope: Envelope } {
  const draft: Record<string, unknown> = {};
  const envelope: Record<string, unknown> = {};
  for (const key in event) {
    if (DRAFT_KEY_SET.has(key)) draft[key] = (event as unknown as Record<string, unknown>)[key];
    else if (ENVELOPE_KEY_SET.has(key)) envelope[key] = (event as unknown as Record<string, unknown>)[key];
  }
  return { draft: draft as unknown as EventDraft, envelope: envelope as unknown as Envelope };
}

/** The envelope of an erased event: all but its leaf and its mark. */
export function envelopeOfErased(event: ErasedEvent): Envelope {
  const { leaf: _leaf, erased: _erased, ...envelope } = event;
  return envelope;
}

export const isErased = (event: object): event is ErasedEvent => 'erased' in event;

/** One JSON object from two canonical ones, without parsing either. */
export const storedEventText = (draftText: string, envelopeText: string): string =>
  `${draftText.slice(0, -1)},${envelopeText.slice(1)}`;
