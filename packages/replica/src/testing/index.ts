export {
  CALM,
  createDeviceNetwork,
  type DeviceNetwork,
  type LedgerEndpoint,
  type NetworkCounts,
  type NetworkRules,
} from './network.ts';
export { createSeededRandom, type SeededRandom } from './seeded-random.ts';
export { createVirtualTime, type DeviceClock, type VirtualTime } from './virtual-time.ts';
