/** A classic fault as data: one exact text of the production code, and what stands there instead. */
export interface Mutation {
  /** Short, unique, in kebab case: what `--only` takes. */
  readonly name: string;
  /** One sentence: what a user would lose. */
  readonly fault: string;
  /** From the root of the repository, with `/`. */
  readonly file: string;
  /** Occurs in the file exactly once. Text and not line numbers, so that it survives edits nearby. */
  readonly find: string;
  readonly replace: string;
  /** Test files that are most likely to notice, from the root of the repository. */
  readonly tests: readonly string[];
}

/** How often a text occurs in another, without overlap. */
export const occurrences = (text: string, find: string): number => (find === '' ? 0 : text.split(find).length - 1);

/** The file's text with the fault in it. Throws where `find` does not stand there exactly once. */
export function mutated(text: string, { name, file, find, replace }: Mutation): string {
  const found = occurrences(text, find);
  if (found !== 1)
    throw new Error(
      `The mutation "${name}" finds its text ${found} times in ${file}; it must stand there exactly once.`,
    );
  return text.replace(find, () => replace);
}
