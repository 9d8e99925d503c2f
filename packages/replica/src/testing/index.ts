export { CRASH_POINTS, type CrashPoint } from './crash-points.ts';
export {
  CALM,
  createDeviceNetwork,
  type DeviceNetwork,
  type LedgerEndpoint,
  type Mishap,
  type NetworkCounts,
  type NetworkRules,
  type RequestKind,
} from './network.ts';
export { createSeededRandom, type SeededRandom } from './seeded-random.ts';
export { createTestEndpoint, type TestEndpoint } from './test-endpoint.ts';
export { createVirtualTime, type DeviceClock, type VirtualTime } from './virtual-time.ts';
export { createWorld, type World, type WorldLedger, type WorldOptions } from './world.ts';
export type { Direction, WorldDevice } from './world-device.ts';
export { type WorldDifference, WorldError } from './world-error.ts';
