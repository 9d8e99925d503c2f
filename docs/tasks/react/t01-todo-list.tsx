/** T1 Todo list. */
import { useCommit, useLiveQuery, useStatus } from './holdfast.ts';

export function Todos() {
  const commit = useCommit();
  const { rows, state } = useLiveQuery((db) => db.selectFrom('todo').selectAll().orderBy('rank'));
  const unsent = useStatus((status) => status.unsent);
  if (state === 'loading') return <p>Opening…</p>;
  return (
    <>
      <form
        action={(data) =>
          void commit((tx) => tx.todo.create({ title: String(data.get('title')), rank: { at: 'end' } }))
        }
      >
        <input name="title" required />
      </form>
      <ul>
        {rows.map((todo) => (
          <li key={todo.id} data-sync={todo.sync}>
            <label>
              <input
                type="checkbox"
                checked={todo.done}
                onChange={() => void commit((tx) => tx.todo.update(todo, { done: !todo.done }))}
              />{' '}
              {todo.title}
            </label>
            <button
              type="button"
              onClick={() => void commit((tx) => tx.todo.delete(todo), { label: `Delete “${todo.title}”` })}
            >
              Delete
            </button>
          </li>
        ))}
      </ul>
      <footer>{unsent > 0 ? `${unsent} not sent yet` : 'All sent'}</footer>
    </>
  );
}
