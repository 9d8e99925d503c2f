/** What a script can rely on. */
export const EXIT = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  /** Something waits for a person: a conflict, a sign-in. */
  personNeeded: 3,
  damageFound: 4,
  notReachable: 5,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
