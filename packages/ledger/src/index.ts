export type { Access, Caller } from './access/access.ts';
export { cookies, firstOf } from './access/cookies.ts';
export { type JwtOptions, jwt } from './access/jwt.ts';
export { type StaticToken, staticTokens } from './access/static-tokens.ts';
export {
  type AdmitRule,
  DEFAULT_PORT,
  defineLedger,
  type LedgerConfig,
  type Listen,
  refuse,
  shownConfig,
} from './config.ts';
export type {
  AdmitChange,
  AdmitRefusal,
  Engine,
  EngineLimits,
  EngineStatus,
  LogFacts,
  LogUsage,
  VerifyReport,
} from './engine/engine.ts';
export { createLedger, type Ledger, openEngineReadOnly, type Served, serveLedger } from './ledger.ts';
