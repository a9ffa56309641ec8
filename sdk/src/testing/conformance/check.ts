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
