import { type ChildProcess, spawn } from 'node:child_process';

/** A child process and everything that it starts, with a time limit. What it prints is kept up to a bound. */
export interface Ended {
  /** Null: it was ended by a signal. */
  readonly code: number | null;
  readonly isTimedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

const OUTPUT_MAX = 8 * 1024 * 1024;

const running = new Set<ChildProcess>();

/** Runs this Node with arguments, in a process group of its own, so that nothing of it outlives the time limit. */
export function runNode(
  args: readonly string[],
  of: { readonly cwd: string; readonly timeoutMs: number },
): Promise<Ended> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: of.cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1', CI: '1' },
    });
    running.add(child);
    let isTimedOut = false;
    const timer = setTimeout(() => {
      isTimedOut = true;
      endGroup(child);
    }, of.timeoutMs);
    const stdout = keep(child.stdout);
    const stderr = keep(child.stderr);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ code, isTimedOut, stdout: stdout(), stderr: stderr(), ms: performance.now() - started });
    });
  });
}

/** Ends every group that was started here and still runs. */
export function endAll(): void {
  for (const child of running) endGroup(child);
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}

function keep(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    if (bytes < OUTPUT_MAX) chunks.push(chunk);
    bytes += chunk.byteLength;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}
