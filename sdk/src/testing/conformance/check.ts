import type { Bench } from "./bench.ts";

/** One line of the checklist in section 16, as far as a plugin has to meet it. */
export interface Check {
  /** `C-nn`. */
  readonly id: string;
  readonly title: string;
  /** Requirements that it tests. */
  readonly ids: readonly string[];
  /** Resolves when the plugin conforms; throws a `Finding` or a `NotApplicable`. */
  run(bench: Bench): Promise<void>;
}

/** The plugin does not conform: what it did, and what it must do. */
export class Finding extends Error {}

/** There is nothing to check, and why. */
export class NotApplicable extends Error {}

export function fail(did: string, must: string): never {
  throw new Finding(`the plugin ${did}; it must ${must}`);
}

export function skip(why: string): never {
  throw new NotApplicable(why);
}

/** Throws the first of sentences of the form "did; must". */
export function failOn(problems: readonly string[]): void {
  const [first] = problems;
  if (first !== undefined) throw new Finding(`the plugin ${first}`);
}
