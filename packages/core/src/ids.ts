import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { LIMITS } from './limits.ts';
import type { Digest, Random } from './ports.ts';

const ID = /^[!-~]{1,128}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const INSTANT = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;
const DIGEST = /^[0-9a-f]{64}$/;
const SALT = /^[0-9a-f]{32}$/;

/** Ids of entities, requests, actions and accounts: 1 to 128 visible ASCII characters (F127). */
export const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value);
/**
 * Names of workspaces and logs, by one rule wherever one is made or asked for: an id that is one part of an address. With a
 * "/" it would be written `%2F` there, which proxies and servers take apart.
 */
export const isAddressName = (value: unknown): value is string => isId(value) && !value.includes('/');
/** What is said of one that is none: the facts of `malformed`. */
export const addressNameProblem = (path: 'workspace' | 'log') => ({
  path,
  reason: '1 to 128 visible ASCII characters without "/"',
});
export const isUuidV7 = (value: unknown): value is string => typeof value === 'string' && UUID_V7.test(value);
/** ISO 8601 in UTC with milliseconds: one form, which sorts as text, of a day that its month has. */
export const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && INSTANT.test(value) && isDayOfMonth(value);

/** Of text that has the form. The first 28 days, which are nearly all, cost a look at two characters. */
function isDayOfMonth(instant: string): boolean {
  const day = 10 * (instant.charCodeAt(8) - ZERO) + instant.charCodeAt(9) - ZERO;
  if (day <= 28) return true;
  const month = 10 * (instant.charCodeAt(5) - ZERO) + instant.charCodeAt(6) - ZERO;
  if (month !== 2) return day <= 30 || (month < 8 ? month % 2 === 1 : month % 2 === 0);
  const year = Number(instant.slice(0, 4));
  return day === 29 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

const ZERO = 48;
export const isDigest = (value: unknown): value is string => typeof value === 'string' && DIGEST.test(value);
export const isSalt = (value: unknown): value is string => typeof value === 'string' && SALT.test(value);

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

export function bytesToHex(bytes: Uint8Array): string {
  let hex = '';
  for (let at = 0; at < bytes.length; at += 1) hex += HEX[bytes[at] as number] as string;
  return hex;
}

export function hexToBytes(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length >> 1);
  for (let at = 0; at < bytes.length; at += 1)
    bytes[at] = (digitOf(hex.charCodeAt(at * 2)) << 4) | digitOf(hex.charCodeAt(at * 2 + 1));
  return bytes;
}

/** '0' to '9', then 'a' to 'f' (or 'A' to 'F'): every digest passes here, so it is arithmetic. */
const digitOf = (unit: number): number => (unit <= 0x39 ? unit - 0x30 : (unit | 0x20) - 0x57);

/** `bytes` random bytes in lower-case hex: salts, host instances, replica ids, epochs. */
export const randomHex = (random: Random, bytes: number): string => bytesToHex(random.bytes(bytes));

/** A UUID of version 7 (RFC 9562): sorts by the device's time, unique by 74 random bits. Order never rests on it. */
export function uuidv7(nowMs: number, random: Random): string {
  const bytes = random.bytes(16);
  let ms = Math.max(0, Math.floor(nowMs));
  for (let at = 5; at >= 0; at -= 1) {
    bytes[at] = ms % 256;
    ms = Math.floor(ms / 256);
  }
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  const hex = bytesToHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The id of an entity with a natural key: the same values give the same id on every device, for ever. */
export function keyedId(entityType: string, values: readonly Json[], digest: Digest): string {
  return `k${bytesToHex(digest.sha256(canonical([entityType, ...values]))).slice(0, 39)}`;
}

/** Names of entity types and fields (SC7). */
export const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LIMITS.nameLengthMax && /^[a-z][A-Za-z0-9]*$/.test(value);
