import type { Tx } from '@holdfast/core';
import type { SeededRandom } from '@holdfast/replica/testing';
import { attend } from './people.ts';
import { isQuiet } from './quiet.ts';
import type { World, WorldSchema } from './world.ts';

export type StageDevice = World['devices'][number];

/** Two people of a world that has come to rest, and what a play needs of them. */
export interface Stage {
  readonly world: World;
  readonly random: SeededRandom;
  readonly ana: StageDevice;
  readonly ben: StageDevice;
  /** A note that both have. */
  note(fields?: { readonly title?: string }): Promise<string>;
  /** The action of a commit that must be possible. */
  commit(device: StageDevice, build: (tx: Tx<WorldSchema>) => void): string;
  away(...devices: readonly StageDevice[]): void;
  /** They come back one after the other, with some time in between. */
  back(...devices: readonly StageDevice[]): Promise<void>;
  /** Everybody agrees, and nothing flows. */
  rest(): Promise<void>;
  /** As an app reads it. */
  row(device: StageDevice, id: string): Readonly<Record<string, unknown>> | undefined;
  /** What a person is asked about it, or only told. */
  desk(
    device: StageDevice,
    id: string,
  ): readonly { readonly kind: string; readonly id: string; readonly revision: number }[];
  outcome(device: StageDevice, action: string): string;
  /** A promise of the play that does not hold is a sentence of its result. */
  expect(isSo: boolean, what: string): void;
}

/** What ends a play before its time. */
export class PlayEnded extends Error {
  override readonly name = 'PlayEnded';
}

const REST_MS = 5 * 60_000;

export function createStage(world: World, random: SeededRandom, found: string[]): Stage {
  const [ana, ben] = world.devices as [StageDevice, StageDevice];
  const stateOf = ({ engine, name }: StageDevice) => {
    if (engine === null) throw new PlayEnded(`${name} does not run`);
    return engine.state;
  };
  const stage: Stage = {
    world,
    random,
    ana,
    ben,
    note: async ({ title = 'new' } = {}) => {
      let id = '';
      stage.commit(ana, (tx) => {
        id = tx.note.create({ title });
      });
      await stage.rest();
      return id;
    },
    commit: (device, build) => {
      const action = device.commit(build);
      if (action === null) throw new PlayEnded(`${device.name} could not commit`);
      return action;
    },
    away: (...devices) => {
      for (const { network } of devices) {
        network.rules.offline = true;
        network.cut();
      }
    },
    back: async (...devices) => {
      for (const { network, engine } of devices) {
        network.rules.offline = false;
        engine?.sync.kick('online');
        await world.time.advance(random.pick([0, 50, 3_000]));
      }
    },
    rest: async () => {
      const isAtRest = await world.time.until(() => {
        attend(world);
        return isQuiet(world);
      }, REST_MS);
      if (!isAtRest) throw new PlayEnded(`nobody came to rest: ${standing(world)}`);
    },
    row: (device, id) => stateOf(device).store.database.prepare('SELECT * FROM note WHERE id = ?').get(id),
    desk: (device, id) =>
      stateOf(device)
        .desk()
        .filter(({ entity }) => entity.id === id),
    outcome: (device, action) => stateOf(device).outcome(action)?.state ?? 'unknown',
    expect: (isSo, what) => {
      if (!isSo) found.push(what);
    },
  };
  return stage;
}

const standing = ({ devices }: World): string =>
  devices
    .map(({ name, engine }) => {
      const log = engine?.state.log('main');
      const { phase, reason } = engine?.sync.status ?? { phase: '-', reason: null };
      return `${name} ${log?.head} ${phase} ${JSON.stringify(reason)} flowing ${engine?.state.flowing('main')}`;
    })
    .join(', ');
