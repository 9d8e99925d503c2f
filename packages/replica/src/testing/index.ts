export {
  CALM,
  createDeviceNetwork,
  type DeviceNetwork,
  type LedgerEndpoint,
  type NetworkCounts,
  type NetworkRules,
} from './network.ts';
export { createSeededRandom, type SeededRandom } from './seeded-random.ts';
export { createTestEndpoint, type TestEndpoint } from './test-endpoint.ts';
export { createVirtualTime, type DeviceClock, type VirtualTime } from './virtual-time.ts';
export { createWorld, type World, type WorldDevice, type WorldOptions } from './world.ts';
