import type { DatabaseSync } from 'node:sqlite';
import type { FailPlan } from '@holdfast/replica/testing/engine';

/** A connection of a ledger's store, of which the n-th statement fails. */
export const failingSqlite =
  (plan: FailPlan) =>
  (connection: DatabaseSync): DatabaseSync =>
    guarded(connection, plan, new Set(['close']));

/** Every method of it, but those named, passes the plan; what `prepare` gives is guarded as well. */
function guarded<T extends object>(inner: T, plan: FailPlan, free: ReadonlySet<string>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const member = Reflect.get(target, name, target) as unknown;
      if (typeof member !== 'function') return member;
      return (...values: unknown[]) => {
        const call = () => Reflect.apply(member, target, values) as unknown;
        if (name === 'prepare') return guarded(call() as object, plan, new Set(['setReturnArrays', 'columns']));
        return free.has(String(name)) ? call() : plan.guard(call);
      };
    },
  });
}
