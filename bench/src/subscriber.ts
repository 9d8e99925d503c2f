import { randomBytes } from 'node:crypto';
import { WebSocket } from 'ws';
import { WORKSPACE } from './world.ts';

/** A socket that follows `main` as DESIGN 5.4 says, and keeps nothing. */
export interface Subscriber {
  close(): void;
}

export function subscribe(
  ledger: string,
  position: { readonly epoch: string; readonly version: number; readonly chain: string },
  run: (frame: { readonly type: string; readonly through?: { readonly version: number } }) => void,
): Promise<Subscriber> {
  const socket = new WebSocket(`${ledger.replace('http', 'ws')}/v1/workspaces/${WORKSPACE}/live`);
  const say = (frame: unknown) => socket.send(JSON.stringify(frame));
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', (code, reason) => reject(new Error(`closed ${code} ${reason}`)));
    socket.once('open', () => {
      const replica = { id: randomBytes(16).toString('hex'), generation: 1, instance: randomBytes(16).toString('hex') };
      say({ type: 'hello', token: 'token', protocol: { min: 1, max: 1 }, replica });
    });
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data));
      if (frame.type === 'welcome') say({ type: 'follow', log: 'main', position });
      else if (frame.type === 'ready') resolve({ close: () => socket.terminate() });
      else if (frame.type === 'ping') say({ type: 'pong', nonce: frame.nonce });
      else if (frame.type === 'events') {
        run(frame);
        // As a device does: after its own commit, so never in the same breath.
        setImmediate(() => say({ type: 'ack', log: 'main', version: frame.through.version }));
      } else reject(new Error(JSON.stringify(frame)));
    });
  });
}

export async function headOf(ledger: string): Promise<{ epoch: string; version: number; chain: string }> {
  const url = `${ledger}/v1/workspaces/${WORKSPACE}/logs/main/events?after=0`;
  const page = JSON.parse(await (await fetch(url, { headers: { Authorization: 'Bearer token' } })).text());
  if (page.more) throw new Error('A head further than one page');
  return { epoch: page.epoch, version: page.through.version, chain: page.through.chain };
}
