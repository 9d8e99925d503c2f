import { checkEntityData, type EntityData, type Json } from '@holdfast/core';

/**
 * An entity type as an event brings it (SC4), or null for what is none: it is then kept as the value that it is. Whatever a
 * log holds, nothing throws. Nor can a log say that what it holds is local.
 */
export function checkSchemaEntity(type: string, json: Json): EntityData | null {
  const read = checkEntityData(type, json);
  return read.ok && read.value.local !== true ? read.value : null;
}
