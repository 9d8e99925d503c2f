import { parentPort } from 'node:worker_threads';
import { schemaData } from '@holdfast/core';
import { FaultError } from '../../packages/replica/src/engine/fault-error.ts';
import type { ComposedHost } from '../../packages/replica/src/host/compose.ts';
import { noNetwork, testSchema } from '../../packages/replica/src/host/host.fixture.ts';
import { openNodeHost } from '../../packages/replica/src/node/open-host.ts';

/** A worker that opens a replica in the same instant as its rivals, and says what came of it. */
export interface RaceAsk {
  readonly dir: string;
  readonly takeOver: boolean;
  /** Counts who has arrived; all go when `rivals` have. */
  readonly barrier: Int32Array;
  readonly rivals: number;
}

let host: ComposedHost | null = null;

parentPort?.on('message', (ask: RaceAsk | 'close') => {
  if (ask === 'close') {
    const closing = host?.close() ?? Promise.resolve();
    host = null;
    void closing.then(() => parentPort?.postMessage('closed'));
    return;
  }
  const { barrier, rivals, dir, takeOver } = ask;
  Atomics.add(barrier, 0, 1);
  Atomics.notify(barrier, 0);
  for (let here = Atomics.load(barrier, 0); here < rivals; here = Atomics.load(barrier, 0))
    Atomics.wait(barrier, 0, here, 1_000);
  parentPort?.postMessage(open(dir, takeOver));
});

function open(dir: string, takeOver: boolean): string {
  try {
    host = openNodeHost({
      dir,
      takeOver,
      schema: schemaData(testSchema),
      ledger: 'http://ledger.test',
      account: 'ana',
      workspace: 'acme',
      token: () => 'ana',
      ...noNetwork,
    });
    return 'opened';
  } catch (cause) {
    return cause instanceof FaultError ? cause.fault.code : String(cause);
  }
}
