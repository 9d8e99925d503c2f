import type { Play } from './coda.ts';
import type { StageDevice } from './stage.ts';

/** Two hosts of one file. */
export const HOSTS: readonly Play[] = [
  {
    name: 'a second host',
    invariant: 'I22',
    play: async ({ ana, ben, random, world, ...stage }) => {
      const id = await stage.note();
      ana.network.rules.delayMs = [20, 40];
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await world.time.advance(random.pick([1, 25, 45]));
      const outranked = ana.takeOver();
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      let hasWritten = true;
      try {
        outranked?.state.write(() => outranked.state.setSetting('outranked', true));
      } catch {
        hasWritten = false;
      }
      stage.expect(!hasWritten, 'a host wrote after another had taken its file');
      await world.time.advance(2_000);
      ana.crash();
      ana.network.rules.delayMs = [1, 5];
      ana.start();
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 2, `two votes count ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a hand-over, asked for in every order',
    invariant: 'I23',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      for (const place of PLACES)
        for (const signal of SIGNALS) {
          // A request on its way keeps a hand-over draining.
          ana.network.rules.delayMs = [20, 20];
          if (place === 'to-browser-draining') {
            stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
            await world.time.advance(1);
          }
          const before = generationOf(ana);
          for (const one of WAYS[place]) ask(ana, one);
          stage.expect(
            placeOf(ana) === place,
            `asked for ${WAYS[place]}, and stands at ${placeOf(ana)} instead of ${place}`,
          );
          ask(ana, signal);
          stage.expect(generationOf(ana) >= before, `at ${place}, ${signal} made a generation smaller`);
          const isSwitched = signal === 'force' || (signal === 'switch' && place.endsWith('switching'));
          if (place.startsWith('to-') && isSwitched)
            stage.expect(generationOf(ana) > before, `at ${place}, ${signal} left the generation as it was`);
          await giveBack(ana, world);
        }
      ana.network.rules.delayMs = [1, 5];
      ana.engine?.sync.kick('online');
      await stage.rest();
      const votes = SIGNALS.length;
      stage.expect(stage.row(ben, id)?.['votes'] === votes, `${votes} votes count ${stage.row(ben, id)?.['votes']}`);
    },
  },
];

// ── who performs the requests ───────────────────────────────────────────────────────────────────────────────────────

type Signal = 'prepare-host' | 'prepare-browser' | 'drain' | 'switch' | 'abort' | 'force';
const SIGNALS: readonly Signal[] = ['prepare-host', 'prepare-browser', 'drain', 'switch', 'abort', 'force'];

/** How each place is come to from `host`. `to-host-draining` is passed within one call, since a browser sends nothing here. */
const WAYS = {
  host: [],
  'to-browser-preparing': ['prepare-browser'],
  'to-browser-draining': ['prepare-browser', 'drain'],
  'to-browser-switching': ['prepare-browser', 'drain'],
  'browser-gateway': ['prepare-browser', 'drain', 'switch'],
  'to-host-preparing': ['prepare-browser', 'drain', 'switch', 'prepare-host'],
  'to-host-switching': ['prepare-browser', 'drain', 'switch', 'prepare-host', 'drain'],
} as const satisfies Readonly<Record<string, readonly Signal[]>>;
const PLACES = Object.keys(WAYS) as readonly (keyof typeof WAYS)[];

const placeOf = ({ engine }: StageDevice) => engine?.coordinator.transfer.current().place;
const generationOf = ({ engine }: StageDevice) => engine?.coordinator.transfer.current().generation ?? 0;

/** Whether it is taken or refused, as the grid says. */
function ask({ engine }: StageDevice, signal: Signal): void {
  engine?.state.write(() => {
    const { transfer } = engine.coordinator;
    const before = transfer.current().generation;
    switch (signal) {
      case 'prepare-host':
        transfer.prepare({ target: 'host', deadlineMs: 0 });
        break;
      case 'prepare-browser':
        transfer.prepare({ target: 'browser-gateway', deadlineMs: 0 });
        break;
      default:
        transfer[signal]();
    }
    const { generation } = transfer.current();
    if (generation !== before) engine.state.takeOver(generation);
  });
}

async function giveBack(device: StageDevice, world: Parameters<Play['play']>[0]['world']): Promise<void> {
  if (placeOf(device)?.startsWith('to-') === true) ask(device, 'abort');
  if (placeOf(device) === 'browser-gateway')
    for (const one of ['prepare-host', 'drain', 'switch'] as const) ask(device, one);
  device.engine?.sync.kick('online');
  await world.time.advance(200);
}
