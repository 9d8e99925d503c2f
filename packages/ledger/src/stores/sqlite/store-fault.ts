import { StoreFault, type StoreFaultCode } from '../../engine/store-port.ts';

/** SQLite's primary result codes, as `node:sqlite` gives them in `errcode`. */
const CODES: Readonly<Record<number, StoreFaultCode>> = {
  5: 'busy',
  6: 'busy',
  11: 'damaged',
  13: 'full',
  26: 'damaged',
};

const errcodeOf = (cause: unknown): number | null => {
  if (!(cause instanceof Error) || !('errcode' in cause)) return null;
  const { errcode } = cause;
  return typeof errcode === 'number' ? errcode & 0xff : null;
};

/** An error of SQLite or of the file system as the engine knows it; any other error stays as it is. */
export function translated(cause: unknown, isRolledBack: boolean): unknown {
  const errcode = errcodeOf(cause);
  if (errcode !== null) return new StoreFault(CODES[errcode] ?? 'failed', { isRolledBack, cause });
  if (cause instanceof Error && 'code' in cause) {
    if (cause.code === 'ENOSPC') return new StoreFault('full', { isRolledBack, cause });
    if (cause.code === 'ERR_INVALID_STATE') return new StoreFault('closed', { isRolledBack, cause });
  }
  return cause;
}
