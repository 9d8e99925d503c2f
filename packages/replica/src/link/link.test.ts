import { MessageChannel } from 'node:worker_threads';
import { linkContract } from '../../../../contract/src/link.ts';
import { openPortChannel, type Port, servePort } from './port.ts';

linkContract({ name: 'a function call', carry: (host) => host });

linkContract({
  name: 'a message port',
  carry: (host) => {
    const { port1, port2 } = new MessageChannel();
    servePort(port2 as unknown as Port, host);
    return openPortChannel(port1 as unknown as Port);
  },
});
