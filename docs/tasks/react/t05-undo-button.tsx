/** T5 Undo button. */
import { useUndo } from './holdfast.ts';

export function UndoButtons() {
  const { can, canRedo, label, undo, redo } = useUndo();
  return (
    <>
      <button type="button" disabled={!can} onClick={undo}>
        Undo{label ? `: ${label}` : ''}
      </button>
      <button type="button" disabled={!canRedo} onClick={redo}>
        Redo
      </button>
    </>
  );
}
