import { isMainThread, type MessagePort, parentPort } from 'node:worker_threads';
import { serveWorker } from './node/worker-host.ts';

/**
 * The entry of a worker that hosts a replica: a file of the app that says `import '@holdfast/replica/worker'`. Imported
 * anywhere else it does nothing.
 */
if (!isMainThread && parentPort !== null) serveWorker(parentPort as MessagePort);
