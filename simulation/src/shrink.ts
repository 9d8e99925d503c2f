import { runSeed, type SeedOptions, type SeedResult } from './run.ts';

/**
 * A failing seed made smaller: classes of faults are left out one after the other, then steps, then devices, as long as the
 * same invariant breaks. Leaving something out draws another world, so that the smallest is found by trying, not proved.
 */
export interface Shrunk {
  readonly options: Required<Pick<SeedOptions, 'faults' | 'steps'>> & Pick<SeedOptions, 'devices' | 'logs' | 'lasting'>;
  readonly result: SeedResult;
  readonly tries: number;
}

const TRIES_MAX = 60;

export async function shrink(failed: SeedResult, options: SeedOptions): Promise<Shrunk> {
  const broken = new Set(failed.violations.map(({ invariant }) => invariant));
  let best: Shrunk['options'] = {
    ...options,
    faults: failed.faults,
    lasting: failed.lasting,
    steps: Math.max(1, failed.steps),
  };
  let result = failed;
  let tries = 0;
  const isStillFailing = async (smaller: Shrunk['options']): Promise<boolean> => {
    if (tries >= TRIES_MAX) return false;
    tries += 1;
    const tried = await runSeed(failed.seed, smaller);
    if (!tried.violations.some(({ invariant }) => broken.has(invariant))) return false;
    best = smaller;
    result = tried;
    return true;
  };
  for (const fault of failed.faults)
    await isStillFailing({ ...best, faults: best.faults.filter((one) => one !== fault) });
  if (best.lasting !== null) await isStillFailing({ ...best, lasting: null });
  if (best.logs !== 1) await isStillFailing({ ...best, logs: 1 });
  if (best.devices !== 2) await isStillFailing({ ...best, devices: 2 });
  for (let cut = Math.floor(best.steps / 2); cut >= 1; cut = Math.floor(cut / 2))
    while (best.steps > cut && (await isStillFailing({ ...best, steps: best.steps - cut })));
  return { options: best, result, tries };
}

/** The command that runs exactly this world again. */
export function replayCommand(seed: number, { faults, steps, devices, logs, lasting }: SeedOptions = {}): string {
  const parts = [`npm run simulate -- --seeds 1 --from ${seed}`];
  if (faults !== undefined) parts.push(`--faults ${faults.length === 0 ? 'none' : faults.join(',')}`);
  if (steps !== undefined) parts.push(`--steps ${steps}`);
  if (devices !== undefined) parts.push(`--devices ${devices}`);
  if (logs !== undefined) parts.push(`--logs ${logs}`);
  if (lasting !== undefined) parts.push(`--lasting ${lasting ?? 'none'}`);
  return [...parts, '--trace'].join(' ');
}
