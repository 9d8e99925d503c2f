import { LEDGER_MUTATIONS } from './list-ledger.ts';
import { OUTBOX_MUTATIONS } from './list-outbox.ts';
import { PERMIT_MUTATIONS } from './list-permits.ts';
import { RULE_MUTATIONS } from './list-rules.ts';
import { STATE_MUTATIONS } from './list-state.ts';
import { WIRE_MUTATIONS } from './list-wire.ts';
import type { Mutation } from './mutation.ts';

/** Every fault that somebody must notice. One more costs an entry here; a survivor costs a test. */
export const MUTATIONS: readonly Mutation[] = [
  ...RULE_MUTATIONS,
  ...STATE_MUTATIONS,
  ...OUTBOX_MUTATIONS,
  ...PERMIT_MUTATIONS,
  ...WIRE_MUTATIONS,
  ...LEDGER_MUTATIONS,
];
