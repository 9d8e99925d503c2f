import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineSchema } from '@holdfast/core';
import { defineLedger, type LedgerConfig, type Served, serveLedger, shownConfig, staticTokens } from '@holdfast/ledger';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { loadSchema } from '../load-schema.ts';
import type { Output } from '../output.ts';
import type { ServeOptions } from './register-serve.ts';

/** Runs a ledger until it is told to stop. */
export async function serve(options: ServeOptions, output: Output): Promise<void> {
  const config = await effective(options);
  if (options.printConfig === true) {
    output.asIs(JSON.stringify(shownConfig(config), null, 2));
    output.value(shownConfig(config));
    return;
  }
  const served = await serveLedger(config).catch((cause: unknown) => {
    throw notServed(cause, config);
  });
  tell(served, options, config.store.sqlite, output);
  await stopped();
  output.line('Closing: no new work, goodbye to sockets, open requests finished.');
  await served.close();
}

/** Flag, then environment, then file. */
async function effective(options: ServeOptions): Promise<LedgerConfig> {
  const env = process.env;
  const port = options.port ?? (env['HOLDFAST_PORT'] === undefined ? undefined : Number(env['HOLDFAST_PORT']));
  const host = options.host ?? env['HOLDFAST_HOST'];
  const dir = options.dir ?? env['HOLDFAST_DIR'];
  const base =
    options.dev === true ? await devConfig(options) : await loadConfig(options.config ?? 'holdfast.config.ts');
  if (options.dev === true && host !== undefined && !['127.0.0.1', '::1', 'localhost'].includes(host))
    throw new Failure({
      code: 'not-for-dev',
      what: `A development ledger does not listen on ${host}.`,
      why: 'Its token is known to everybody.',
      next: 'Write a holdfast.config.ts with real access, and run "holdfast serve".',
      exitCode: EXIT.wrongUse,
    });
  return defineLedger({
    ...base,
    ...(dir === undefined ? {} : { store: { sqlite: dir } }),
    listen: { ...base.listen, ...(port === undefined ? {} : { port }), ...(host === undefined ? {} : { host }) },
  });
}

/** A schema of our own here would number and judge an app's entities that happen to have the same names. */
const devConfig = async ({ schema, account = [] }: ServeOptions): Promise<LedgerConfig> => ({
  schema: schema === undefined ? defineSchema({}) : await loadSchema(schema),
  store: { sqlite: '.holdfast/ledger' },
  access: staticTokens(
    Object.fromEntries(['dev', ...account].map((name) => [name, { account: name, grants: { '*': 'administrator' } }])),
  ),
  createOnFirstUse: true,
  listen: { host: '127.0.0.1' },
  origins: ['http://localhost:5173', 'http://127.0.0.1:5173'],
  logLevel: 'warn',
});

async function loadConfig(path: string): Promise<LedgerConfig> {
  const file = resolve(path);
  if (!existsSync(file))
    throw new Failure({
      code: 'no-config',
      what: `There is no ${path}.`,
      why: 'A ledger needs to know who may come in.',
      next: 'Write one with defineLedger({ … }), or run "holdfast dev" to try things out.',
      exitCode: EXIT.wrongUse,
    });
  const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown; readonly config?: unknown };
  return (module.default ?? module.config) as LedgerConfig;
}

function notServed(cause: unknown, config: LedgerConfig): unknown {
  const { code } = cause as { readonly code?: string };
  if (code === 'EADDRINUSE')
    return new Failure({
      code: 'port-in-use',
      what: `Port ${config.listen?.port ?? 4800} is taken.`,
      why: 'Another program listens there, perhaps another ledger.',
      next: 'Stop it, or choose another port with --port.',
      cause,
    });
  if (code === 'busy')
    return new Failure({
      code: 'ledger-in-use',
      what: `Another ledger holds ${config.store.sqlite}.`,
      why: 'Two ledgers on one folder would order things twice.',
      next: 'Stop the other one, or choose another folder with --dir.',
      cause,
    });
  return cause;
}

function tell({ url, adminUrl }: Served, options: ServeOptions, folder: string, output: Output): void {
  const isDev = options.dev === true;
  output.value({ url, admin: adminUrl, dev: isDev });
  output.facts({
    Ledger: url,
    Admin: `${adminUrl}/metrics  /healthz  /readyz`,
    ...(isDev
      ? {
          Workspace: 'dev, or any other: made on first use',
          Token: `${['dev', ...(options.account ?? [])].join(', ')}: with all roles, on loopback only, not for data you care about`,
          Schema: options.schema ?? 'none: any type is taken, and no serial is numbered (--schema FILE)',
          Files: resolve(folder),
        }
      : {}),
  });
  if (isDev) output.asIs(`Try        curl -H 'Authorization: Bearer dev' ${url}/v1/session`);
}

const stopped = (): Promise<void> =>
  new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
