/**
 * Every bound of the engine, in one place. A limit that a user can meet is published by the ledger in `/v1/session`
 * and named in the error that it causes.
 */
export const LIMITS = {
  /** One event, its draft in canonical bytes. Beyond: `too-large`. */
  eventBytesMax: 256 * 1024,
  /** One entity after fold, its fields in canonical bytes. Beyond: `invalid-event` at the ledger, refused at commit. */
  entityBytesMax: 1024 * 1024,
  fieldsPerEntityMax: 1_000,
  nameLengthMax: 63,
  idLengthMax: 128,
  /** Levels of one event's draft: its own three, and those of the values in it. */
  jsonDepthMax: 64,
  /** Levels of a draft around a field's value: draft, change, fields. A value has what they leave of `jsonDepthMax`. */
  draftDepth: 3,
  /** Levels of a message, or of a pack, around its drafts, which may themselves be `jsonDepthMax` deep. */
  frameDepthMax: 8,
  /** Names that devices give for people to read: an app, its schema. */
  labelLengthMax: 256,
  commitEventsMax: 512,
  commitBytesMax: 1024 * 1024,
  pageEventsMax: 512,
  pageBytesMax: 1024 * 1024,
  /** A request body. A push holds at most `pageBytesMax` of drafts; the rest is room for its frame. */
  bodyBytesMax: 4 * 1024 * 1024,
  commandEventsMax: 20_000,
  commandBytesMax: 32 * 1024 * 1024,
  needsMax: 16,
  requiresMax: 512,
  theirsExaminedMax: 1_000,
  handshakePositionsMax: 64,
  deskListedMax: 1_000,
  outcomesKept: 10_000,
  outcomesKeptMs: 7 * 86_400_000,
  runTimeTypesMax: 500,
  liveBufferBytesMax: 1024 * 1024,
  retryMinMs: 1_000,
  retryMaxMs: 60_000,
  automaticRebasesMax: 8,
  journalEntriesMax: 1_000,
  journalPageMax: 50,
  undoKept: 200,
  /** Ingested events kept below the head, and below the lowest base that pending work still needs. */
  historyEventsKept: 10_000,
  socketCatchUpEventsMax: 512,
  /** One frame from a device: a token and a position, never events. */
  socketFrameBytesMax: 64 * 1024,
  /** Bytes that may wait for one live subscriber. Beyond: `resync-required`. */
  socketWindowBytesMax: 1024 * 1024,
  stallMs: 30_000,
  /** A request that brings no byte for this long is given up: its outcome is unknown (PM12). */
  requestSilenceMs: 20_000,
  /** However much it brings, a request ends after this. */
  requestTotalMs: 300_000,
  /** Logs named in one handshake; more are asked for in the next one. */
  handshakeLogsMax: 64,
  closeMs: 5_000,
  transactRunsMax: 5,
  permitsKept: 1_000,
  permitsKeptMs: 7 * 86_400_000,
  permitPruneBatch: 250,
  permitPruneSweep: 5_000,
  permitListMax: 500,
  permitListDefault: 100,
  /** Open obligations read at once; the rest come with the next cycle. */
  obligationsListedMax: 1_000,
  /** Queries of apps kept prepared by a host. */
  preparedQueriesMax: 200,
  /** Live queries of one host, equal ones counted once. Beyond: that query fails. */
  liveQueriesMax: 1_000,
  /** Unanswered requests of one caller over a link. Beyond: the next one fails at once. */
  linkRequestsMax: 10_000,
  /** A page says after so many messages of its host that it has heard them. */
  linkHeardEvery: 16,
  /** A page that has heard none of so many is told only what it asks for, until it has. */
  linkUnheardMax: 64,
  /** A caller's own commits that are remembered until they are in the log (CM2). */
  ownCommitsKept: 1_000,
  /** Commits answered in one turn; the next one waits until sync and live queries had theirs. */
  commitsPerTurnMax: 64,
  /** A request over a link that should take milliseconds is failed after this. */
  linkAnswerMs: 30_000,
} as const;
