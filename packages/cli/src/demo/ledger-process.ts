import { serveLedger, staticTokens, type VerifyReport } from '@holdfast/ledger';
import { trackerSchema } from '../tracker-schema.ts';
import { serveParent } from './child.ts';

/** The demonstration's ledger, in a process of its own. Arguments: the folder, the port (0 for any). */
export type LedgerAsks = {
  readonly url: { send: null; answer: string };
  readonly verify: { send: null; answer: VerifyReport | null };
};

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
    url: () => served.url,
    verify: () => served.ledger.engine.verify({ workspace: 'demo', log: 'main' }),
  },
  () => served.close(),
);
