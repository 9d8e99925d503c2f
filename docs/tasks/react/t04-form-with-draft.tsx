/** T4 A form with a draft. */
import type { Id } from '@holdfast/core';
import { useDraft } from './holdfast.ts';

export function EditIssue({ id }: { readonly id: Id<'issue'> }) {
  // Survives a reload; not sent to anybody.
  const draft = useDraft('issue', id);
  return (
    <form action={() => draft.save({ label: 'Edit issue' })}>
      <input
        value={draft.values.title}
        onChange={(event) => draft.set({ title: event.target.value })}
        aria-invalid={!!draft.problems.title}
      />
      {draft.problems.title && <p role="alert">{draft.problems.title}</p>}
      {draft.theirs.title !== undefined && (
        <p>
          Somebody changed the title to “{draft.theirs.title}” meanwhile.
          <button type="button" onClick={() => draft.set({ title: draft.theirs.title! })}>
            Take theirs
          </button>
        </p>
      )}
      <textarea value={draft.values.body} onChange={(event) => draft.set({ body: event.target.value })} />
      <button type="submit" disabled={draft.changed.length === 0}>
        Save
      </button>
      <button type="button" onClick={draft.discard}>
        Discard
      </button>
    </form>
  );
}
