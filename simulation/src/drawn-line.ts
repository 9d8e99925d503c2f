/** The part of stderr that is used. */
export interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** One line of a terminal that is drawn over. What is written to it between must come after `clear`. */
export interface DrawnLine {
  /** Nothing where nobody watches, or the terminal knows no cursor. */
  readonly isShown: boolean;
  draw(text: string): void;
  clear(): void;
}

export function createDrawnLine(stream: ProgressStream): DrawnLine {
  const isShown = stream.isTTY === true && process.env['TERM'] !== 'dumb';
  let isDrawn = false;
  return {
    isShown,
    draw: (text) => {
      if (!isShown) return;
      // A line that wraps could not be drawn over: its end is left out, and the last column stays free.
      stream.write(`\r\u001b[2K${text.slice(0, Math.max(1, (stream.columns ?? 80) - 1))}`);
      isDrawn = true;
    },
    clear: () => {
      if (isDrawn) stream.write('\r\u001b[2K');
      isDrawn = false;
    },
  };
}
