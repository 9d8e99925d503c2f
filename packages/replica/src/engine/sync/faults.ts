import { BrokenInvariant, type Fault, type FaultCode, type JsonObject } from '@holdfast/core';
import { FaultError } from '../fault-error.ts';
import { messageOf } from './journal.ts';
import type { Lane } from './lanes.ts';
import type { SyncParts } from './parts.ts';
import type { SessionDriver } from './session.ts';

/** F13: what a loop does about an error it did not expect. False: the loop must not go on. */
export interface Faults {
  ofLane(lane: Lane, error: unknown): boolean;
  ofLedger(error: unknown): boolean;
}

/** The fence has spoken: another host, or another owner, has this file now. */
const OUTRANKED: ReadonlySet<FaultCode> = new Set(['outranked', 'stale-generation', 'host-instance-mismatch']);

export function createFaults(of: {
  readonly parts: SyncParts;
  readonly session: Pick<SessionDriver, 'signal'>;
  readonly stop: (fault: Fault) => void;
}): Faults {
  const { parts, session, stop } = of;

  const take = (error: unknown, log: string | null): Fault | null => {
    const fault = faultOf(error);
    if (OUTRANKED.has(fault.code)) {
      parts.logger('warn', 'Another host has taken over; this one stops.', { log });
      stop(fault);
      return null;
    }
    if (fault.code === 'replica-gone') {
      parts.logger('error', 'The replica file was removed or replaced; this host stops.', { log });
      stop(fault);
      return null;
    }
    const isExpected = error instanceof FaultError && fault.code !== 'engine-fault';
    const named = { log, code: fault.code, ...namesIn(fault) };
    parts.logger(isExpected ? 'warn' : 'error', 'A sync loop failed, and starts again later.', {
      ...named,
      error: fault.facts?.['error'] ?? messageOf(error),
    });
    parts.journal.write('fault', named);
    return fault;
  };

  return {
    ofLane: (lane, error) => {
      const { facts } = lane;
      const fault = take(error, facts.log);
      if (fault === null) return false;
      facts.fault = fault;
      facts.isProven = false;
      // PM10: found in the file. Only this log waits for a person.
      if (fault.code === 'local-commit-invariant')
        parts.edge.run(() => parts.write(() => parts.state.block(facts.log, fault)));
      return true;
    },
    ofLedger: (error) => {
      const fault = take(error, null);
      if (fault === null) return false;
      // Whoever looks is told what stands in the way, and not that the ledger is silent (I30).
      session.signal('unreachable', fault);
      return true;
    },
  };
}

/** F07: which event could not be worked out, where it is known. */
function namesIn({ facts = {} }: Fault): JsonObject {
  const { entity, id, version } = facts as JsonObject;
  return entity === undefined || id === undefined || version === undefined ? {} : { entity, id, version };
}

/** What an error means to whoever is told of it. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return error.fault;
  const code: FaultCode = isStorageFull(error) ? 'storage-full' : 'engine-fault';
  return { code, facts: { error: error instanceof BrokenInvariant ? error.message : messageOf(error) } };
}

const isStorageFull = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'storage-full';
