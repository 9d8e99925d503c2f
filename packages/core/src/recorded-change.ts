import type { Json, JsonObject } from './json.ts';

/**
 * One change of a commit as its author's page recorded it: plain data with names and values as in code, which crosses the
 * link to the host. The host turns it into an event: wire names, rules, base, prior, ranks.
 */
export type RecordedChange =
  | {
      readonly do: 'create' | 'put';
      readonly entity: string;
      readonly id: string;
      readonly fields: JsonObject;
      /** Ranked fields: where the row goes; the host makes the key inside the commit. */
      readonly place?: Readonly<Record<string, JsonObject>>;
      readonly verb?: string;
    }
  | {
      readonly do: 'update';
      readonly entity: string;
      readonly id: string;
      readonly set?: JsonObject;
      readonly unset?: readonly string[];
      readonly inc?: Readonly<Record<string, number>>;
      readonly add?: Readonly<Record<string, readonly Json[]>>;
      readonly remove?: Readonly<Record<string, readonly Json[]>>;
      readonly place?: Readonly<Record<string, JsonObject>>;
      readonly verb?: string;
    }
  | { readonly do: 'delete'; readonly entity: string; readonly id: string; readonly verb?: string }
  | {
      readonly do: 'restore';
      readonly entity: string;
      readonly id: string;
      /** By name in code; absent: what it was when it was deleted. */
      readonly fields?: JsonObject;
      readonly verb?: string;
    };

/** What the author saw of a field that the commit writes (CM2); null is unset. */
export interface SeenValue {
  readonly entity: string;
  readonly id: string;
  readonly field: string;
  readonly value: Json;
}
