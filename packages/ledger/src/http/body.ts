import { type Json, LIMITS, parseWire } from '@holdfast/core';
import { type Refused, refusedBy } from '../engine/answer.ts';

const isJsonType = (type: string | null): boolean =>
  type !== null && /^application\/json\s*(;\s*charset=utf-8\s*)?$/i.test(type);

/** The request's own frame around drafts, which may themselves be `jsonDepthMax` deep. */
const FRAME_DEPTH = LIMITS.frameDepthMax;

/** Fatal: nothing is replaced. A byte order mark is kept, and then refused by the parser. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads at most `bytesMax` bytes; null once there are more. The rest is not read. A body of declared length is as long as
 * that, because the server cuts it there, and is read in one piece; one without is read chunk by chunk.
 */
async function readAtMost(request: Request, declared: number | null, bytesMax: number): Promise<Uint8Array | null> {
  if (declared !== null) {
    if (declared > bytesMax) return null;
    const bytes = await request.arrayBuffer();
    return bytes.byteLength > bytesMax ? null : new Uint8Array(bytes);
  }
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > bytesMax) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}

export type Body = { readonly ok: true; readonly json: Json } | { readonly ok: false; readonly refused: Refused };

/**
 * A JSON body, read strictly: type, size before parse, UTF-8, no duplicate keys, bounded depth (JS3, S06, S07). Compressed
 * bodies are refused, so there is nothing to inflate (S08).
 */
export async function readJsonBody(request: Request, bytesMax: number = LIMITS.bodyBytesMax): Promise<Body> {
  if (!isJsonType(request.headers.get('content-type'))) return refuse(refusedBy('unsupported-media-type'));
  const encoding = request.headers.get('content-encoding');
  if (encoding !== null && encoding !== 'identity') return refuse(refusedBy('unsupported-media-type'));
  const bytes = await readAtMost(request, declaredLength(request), bytesMax);
  if (bytes === null) return refuse(tooLarge(bytesMax));
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    return refuse(refusedBy('malformed', { message: 'The body is not UTF-8.' }));
  }
  const json = parseWire(text, { bytesMax, depthMax: LIMITS.jsonDepthMax + FRAME_DEPTH });
  if (json.ok) return { ok: true, json: json.value };
  if (json.fault.code === 'too-large') return refuse(tooLarge(bytesMax));
  const { path, reason } = (json.fault.facts ?? {}) as { path?: string; reason?: string };
  return refuse(refusedBy('malformed', { details: { path: path ?? '', reason: reason ?? 'not JSON' } }));
}

/** Null where none is declared, or none that is a number. */
function declaredLength(request: Request): number | null {
  const declared = request.headers.get('content-length');
  return declared !== null && /^\d{1,15}$/.test(declared) ? Number(declared) : null;
}

const refuse = (refused: Refused): Body => ({ ok: false, refused });
const tooLarge = (limit: number): Refused => refusedBy('too-large', { details: { limit } });
