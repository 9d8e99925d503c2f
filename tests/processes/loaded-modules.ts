import { registerHooks } from 'node:module';

/**
 * Runs commands one after the other in this process. argv: a JSON list of argument lists. stdout: one JSON value a line,
 * `{ code, loaded }`, the URLs of the modules that were loaded since the command before.
 */
let loaded: string[] = [];
registerHooks({
  load: (url, context, next) => {
    loaded.push(url);
    return next(url, context);
  },
});
const { run } = await import('../../packages/cli/src/main.ts');
const silent = { write: () => {} };
for (const args of JSON.parse(process.argv[2] as string) as string[][]) {
  const code = await run(args, { out: silent, err: silent });
  process.stdout.write(`${JSON.stringify({ code, loaded })}\n`);
  loaded = [];
}
