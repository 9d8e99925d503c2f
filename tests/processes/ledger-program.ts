import { serveLedger, staticTokens, type VerifyReport } from '@holdfast/ledger';
import { serveParent } from '../../packages/cli/src/demo/child.ts';
import { trackerSchema } from '../../packages/cli/src/tracker-schema.ts';
import { arm, type LedgerPoint, watchLedger } from './die.ts';

/** The ledger in a process of its own, on a wrapped platform. Arguments: the folder, the port (0 for any). */
export type LedgerAsks = {
  readonly arm: { send: LedgerPoint; answer: null };
  readonly url: { send: null; answer: string };
  readonly verify: { send: null; answer: VerifyReport | null };
  /** Never answered: it fails when the process ends. */
  readonly end: { send: null; answer: never };
};

watchLedger();
const [folder, port] = process.argv.slice(2);
const served = await serveLedger({
  schema: trackerSchema,
  store: { sqlite: folder as string },
  access: staticTokens({
    'ana-token': { account: 'ana', grants: { demo: 'writer' } },
    'ben-token': { account: 'ben', grants: { demo: 'writer' } },
  }),
  listen: { port: Number(port) },
  admin: { port: 0 },
  createOnFirstUse: true,
  logLevel: 'silent',
});

serveParent<LedgerAsks>(
  {
    arm: (point) => {
      arm(point);
      return null;
    },
    url: () => served.url,
    verify: () => served.ledger.engine.verify({ workspace: 'demo', log: 'main' }),
    end: () => new Promise<never>(() => undefined),
  },
  () => served.close(),
);
