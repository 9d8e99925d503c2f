import { canonical } from './canonical.ts';
import { bytesToHex } from './ids.ts';
import type { Json } from './json.ts';
import type { Digest } from './ports.ts';
import type { SchemaData } from './schema-data.ts';

/** Names a schema; orders nothing, and does not depend on the library's version (SC2). 32 hex digits. */
export const fingerprintOf = (schema: SchemaData, digest: Digest): string =>
  bytesToHex(digest.sha256(canonical(schema as unknown as Json))).slice(0, 32);
