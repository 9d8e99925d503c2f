/**
 * Scenarios of docs/SCENARIOS.md that wait for a part which does not exist yet. A scenario of which one half runs already
 * has a test as well; the table names both.
 */
export interface WaitingScenario {
  /** As in the table. */
  readonly scenario: string;
  readonly waitsFor: string;
  /** The half that a test runs already; null if none. */
  readonly runsAlready: string | null;
}

export const WAITING: readonly WaitingScenario[] = [
  {
    scenario: 'sequence gap that readers skip',
    waitsFor: 'the PostgreSQL store',
    runsAlready: '32 writers and a paging reader on the SQLite store',
  },
  {
    scenario: 'server compacted before all peers had the operations',
    waitsFor: 'compaction',
    runsAlready: null,
  },
  {
    scenario: 'leader tab closes; follower never clears',
    waitsFor: 'browser tabs that elect the next owner by themselves, killed 100 times in a browser',
    runsAlready: 'three tabs over ports; the test starts the next owner',
  },
  {
    scenario: 'sleeping tab owns the connection; everyone waits',
    waitsFor: 'browser tabs: a frozen owner is noticed and replaced',
    runsAlready: 'a frozen host, the next one on its file, and the wake-up',
  },
  {
    scenario: 'hidden tab never sends',
    waitsFor: 'browser tabs: timers of a hidden tab, once a minute at most',
    runsAlready: 'a caller that says it is hidden, and a host that dies right after a commit',
  },
  {
    scenario: 'two code versions share a store; newer one erases the other',
    waitsFor: 'browser tabs: two bundles of one origin',
    runsAlready: 'two schema versions as hosts of one file, in turns',
  },
  {
    scenario: 'locks and back/forward cache',
    waitsFor: 'browser tabs: WebKit, a page that is cached while it owns',
    runsAlready: 'a frozen host whose lock is gone, woken at every await of a write',
  },
  {
    scenario: 'failed open deletes the database',
    waitsFor: 'the file system of a browser: handles that a dying worker still holds',
    runsAlready: 'a Node file whose opening fails at every call of the platform',
  },
  {
    scenario: 'several silent ways to lose offline data',
    waitsFor: 'a browser that evicts storage, and asks for persistent storage',
    runsAlready: 'lost permission, sign-out, failed migration',
  },
  {
    scenario: 'two daemons on one database',
    waitsFor: 'the daemon',
    runsAlready: 'hosts and ledgers as processes that hold a file',
  },
  {
    scenario: 'compaction never runs in short sessions',
    waitsFor: 'compaction of the ledger',
    runsAlready: 'history on the device, pruned at every start',
  },
  {
    scenario: 'lone surrogate or NUL',
    waitsFor: 'the PostgreSQL store',
    runsAlready: 'the SQLite store and two devices',
  },
  {
    scenario: 'localhost: Origin = Host is not enough',
    waitsFor: 'the daemon: a list of allowed hosts, and 421 for others',
    runsAlready: 'a ledger on localhost, asked under a foreign name',
  },
  {
    scenario: 'service worker serves a dead shell; HTML cached as JavaScript',
    waitsFor: 'a browser with a service worker, and an app shell that is deployed twice',
    runsAlready: 'what the ledger answers for missing files, and a device behind pages or too old for its ledger',
  },
];
