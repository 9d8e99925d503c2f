/** T14: an entity type that the app's code does not know, defined and used while it runs. */
import { defineType, entity, entityNamed, flag, type Id, setOf, text } from '@holdfast/core';
import type { Replica } from '@holdfast/replica';
import type { AppSchema } from './schema.ts';

/** What the compiler may know of a table that comes at run time. */
export interface Invoice {
  readonly id: Id<'invoice'>;
  readonly number: string;
  readonly paid: boolean;
  readonly tags: readonly string[];
}

/** At every start, on every device: the same definition again writes nothing. Works offline. */
export async function firstInvoice(replica: Replica<AppSchema>): Promise<Id> {
  return await replica.commit(
    (tx) => {
      defineType(tx, 'invoice', entity({ number: text(), paid: flag({ default: false }), tags: setOf(text()) }));
      return entityNamed(tx, 'invoice').create({ number: '2026-001', tags: ['first'] });
    },
    { label: 'New invoice' },
  );
}

/** Values come back as the definition says: a flag as a boolean, a set as an array. */
export const unpaid = (replica: Replica<AppSchema>) =>
  replica.query((db) =>
    db
      .withTables<{ invoice: Invoice }>()
      .selectFrom('invoice')
      .select(['id', 'number', 'paid', 'tags'])
      .where('paid', '=', false)
      .orderBy('number'),
  );

export const pay = (replica: Replica<AppSchema>, invoice: { readonly id: Id }) =>
  replica.commit((tx) => entityNamed(tx, 'invoice').update(invoice, { paid: true }), { label: 'Pay an invoice' });

/** Pays it only if it is still open when the commit is made, and says what became of it since it was written. */
export async function payOnce(replica: Replica<AppSchema>, id: Id): Promise<readonly string[]> {
  await replica.transact(async (tx) => {
    const invoice = await tx.getNamed('invoice', id);
    if (invoice?.['paid'] === false) entityNamed(tx.write, 'invoice').update(id, { paid: true });
  });
  return (await replica.historyNamed('invoice', id)).map(({ type }) => type);
}
