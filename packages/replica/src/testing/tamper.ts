import type { OpenedState } from '../engine/state.ts';

/**
 * What a defect or a bad disk leaves behind, in a file that is open: statements that no event explains. The replica reads its
 * logs again afterwards; what it holds of rows is as it was.
 */
export function tamper(state: OpenedState | undefined, sql: string): void {
  if (state === undefined) throw new Error('This device is not open.');
  const { store } = state;
  state.write(() => {
    store.database.exec(sql);
    store.tracker.logs = true;
  });
}
