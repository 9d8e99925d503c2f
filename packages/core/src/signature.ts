import { canonical } from './canonical.ts';
import { ownValue } from './fields.ts';
import { bytesToHex, hexToBytes } from './ids.ts';
import type { Json, JsonObject } from './json.ts';
import type { Digest } from './ports.ts';

/** What the signature reads of an entity. */
export interface SignedEntity {
  readonly type: string;
  readonly id: string;
  readonly version: number;
  readonly fields: JsonObject;
}

const WORDS = 8;

/**
 * The state signature (DG2): the sum modulo 2^256, over live entities, of one hash for type, id and version and one
 * hash per field that events set. A sum does not care about order, so a change costs its own bytes: what it replaces
 * is subtracted, what it sets is added. Additive multiset hashing after Clarke, Devadas, van Dijk, Gassend and Suh
 * (2003), there with a modulus; it finds faults, not forgers.
 */
export class StateSignature {
  /** Least significant word first. */
  readonly #words = new Uint32Array(WORDS);
  readonly #digest: Digest;

  constructor(digest: Digest, hex?: string) {
    this.#digest = digest;
    if (hex === undefined) return;
    const bytes = hexToBytes(hex);
    for (let word = 0; word < WORDS; word += 1) this.#words[word] = wordOf(bytes, word);
  }

  add(entity: SignedEntity): void {
    this.#whole(entity, 1);
  }

  remove(entity: SignedEntity): void {
    this.#whole(entity, -1);
  }

  #whole(entity: SignedEntity, sign: 1 | -1): void {
    const name = nameText(entity);
    this.#sum(versionText(name, entity.version), sign);
    for (const field in entity.fields) this.#sum(fieldText(name, field, entity.fields[field] as Json), sign);
  }

  /** From one state of one entity to the next. A field whose value is the same object or scalar costs nothing. */
  replace(before: SignedEntity | undefined, after: SignedEntity | undefined): void {
    if (before === undefined || after === undefined) {
      if (before !== undefined) this.remove(before);
      if (after !== undefined) this.add(after);
      return;
    }
    const name = nameText(after);
    if (before.version !== after.version) {
      this.#sum(versionText(name, before.version), -1);
      this.#sum(versionText(name, after.version), 1);
    }
    for (const field in before.fields) {
      const old = before.fields[field] as Json;
      const now = ownValue(after.fields, field);
      if (old === now) continue;
      this.#sum(fieldText(name, field, old), -1);
      if (now !== undefined) this.#sum(fieldText(name, field, now), 1);
    }
    for (const field in after.fields)
      if (!Object.hasOwn(before.fields, field)) this.#sum(fieldText(name, field, after.fields[field] as Json), 1);
  }

  toHex(): string {
    const bytes = new Uint8Array(WORDS * 4);
    for (let word = 0; word < WORDS; word += 1) {
      const value = this.#words[word] as number;
      const at = (WORDS - 1 - word) * 4;
      bytes[at] = value >>> 24;
      bytes[at + 1] = (value >>> 16) & 0xff;
      bytes[at + 2] = (value >>> 8) & 0xff;
      bytes[at + 3] = value & 0xff;
    }
    return bytesToHex(bytes);
  }

  #sum(text: string, sign: 1 | -1): void {
    const hash = this.#digest.sha256(text);
    const words = this.#words;
    let carry = 0;
    for (let word = 0; word < WORDS; word += 1) {
      const sum = (words[word] as number) + sign * wordOf(hash, word) + carry;
      words[word] = sum;
      carry = Math.floor(sum / 4_294_967_296);
    }
  }
}

/** Word `word` of a 32 byte big-endian number, least significant first. */
function wordOf(bytes: Uint8Array, word: number): number {
  const at = (WORDS - 1 - word) * 4;
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}

/** Canonical arrays whose first element tells them apart: no field can be made to look like a version. */
const versionText = (name: string, version: number): string => `["v",${name},${version}]`;
const fieldText = (name: string, field: string, value: Json): string =>
  `["f",${name},${quote(field)},${canonical(value)}]`;
/** What all texts of one entity share. */
const nameText = ({ type, id }: SignedEntity): string => `${quote(type)},${quote(id)}`;
const quote = (text: string): string => JSON.stringify(text);

/** The signature of a whole state, from scratch. */
export function signatureOf(entities: Iterable<SignedEntity>, digest: Digest): string {
  const signature = new StateSignature(digest);
  for (const entity of entities) signature.add(entity);
  return signature.toHex();
}
