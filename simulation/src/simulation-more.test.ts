import { seedsHold } from './seeds.fixture.ts';

seedsHold(251, 500);
