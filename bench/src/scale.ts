/**
 * How large a run is, beside the sizes that are measured: `BENCH_SCALE`, above 0 up to 1. Below 1 it shows that a benchmark
 * runs, and measures nothing.
 */
const asked = Number(process.env['BENCH_SCALE'] ?? 1);
export const SCALE = asked > 0 && asked <= 1 ? asked : 1;

/** `least`: below it the work would be another one. */
export const scaled = (size: number, least = 1): number => Math.max(least, Math.round(size * SCALE));
