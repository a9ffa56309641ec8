import type { ConfigErrorCode } from "./config-error.ts";
import type { KeyPath } from "./key-path.ts";

export interface DecodeProblemFacts {
  readonly code: ConfigErrorCode;
  readonly keyPath: KeyPath;
  /** Says nothing of the value itself (C-031). */
  readonly problem: string;
  readonly advice?: string | undefined;
}

/** A broken rule at a key, before anyone has looked up in which file and line it stands. */
export class DecodeProblem extends Error {
  override readonly name = "DecodeProblem";
  readonly code: ConfigErrorCode;
  readonly keyPath: KeyPath;
  readonly problem: string;
  readonly advice: string | undefined;

  constructor({ code, keyPath, problem, advice }: DecodeProblemFacts) {
    super(problem);
    this.code = code;
    this.keyPath = keyPath;
    this.problem = problem;
    this.advice = advice;
  }
}
