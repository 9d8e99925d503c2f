/** One broken promise, named by its invariant. */
export interface Violation {
  readonly invariant: string;
  readonly device?: string;
  readonly what: string;
}
