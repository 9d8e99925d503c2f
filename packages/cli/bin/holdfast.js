#!/usr/bin/env node
const [major] = process.versions.node.split('.');
if (Number(major) < 24) {
  process.stderr.write(
    `This is Node ${process.versions.node}; holdfast needs 24 or newer.  [node-too-old]\n` +
      'It uses node:sqlite and runs TypeScript directly.\n' +
      'Inside the repository "npx holdfast" finds the Node that it brings; elsewhere update Node.\n',
  );
  process.exit(1);
}
// Whoever read it has seen enough: "head", a pager that was closed.
process.stdout.on('error', (cause) => {
  if (cause.code !== 'EPIPE') throw cause;
  process.exit();
});
const { run } = await import('../src/main.ts');
process.exitCode = await run(process.argv.slice(2));
