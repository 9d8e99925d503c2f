/** One thing in which a device and the ledger, or a device and itself, differ. */
export interface WorldDifference {
  /** The name of the device, or `ledger` where the ledger contradicts its own events. */
  readonly device: string;
  /** With whom it was compared. */
  readonly versus: 'ledger' | 'its own events';
  readonly log: string;
  readonly what: 'head' | 'chain' | 'signature' | 'field' | 'entity' | 'unsent' | 'damage';
  readonly entity?: { readonly type: string; readonly id: string };
  /** By wire name. */
  readonly field?: string;
  /** Of the device; absent where it has none. */
  readonly here?: unknown;
  /** Of the ledger; absent where it has none. */
  readonly there?: unknown;
  /** All of it in one line, for a person. */
  readonly line: string;
}

/**
 * What a test world rejects with. `world-timeout`: virtual time ran out; `facts` says what was waited for and where every
 * device stands. `world-differs`: `differences` says in what; at most 50 are listed, `facts.found` counts all.
 */
export class WorldError extends Error {
  override readonly name = 'WorldError';
  readonly code: 'world-timeout' | 'world-differs';
  readonly facts: Readonly<Record<string, unknown>>;
  readonly differences: readonly WorldDifference[];

  constructor(
    code: WorldError['code'],
    message: string,
    facts: Readonly<Record<string, unknown>>,
    differences: readonly WorldDifference[] = [],
  ) {
    super(message);
    this.code = code;
    this.facts = facts;
    this.differences = differences;
  }
}
