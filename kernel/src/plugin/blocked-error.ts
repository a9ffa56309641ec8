import { CookieError } from "@cookie-agent/sdk/protocol";
import type { HookOutcome } from "./hook-chain.ts";

/** Why an operation that hooks guard does not happen, for whoever asked for it. */
export function blockedError(
  outcome: Exclude<HookOutcome<unknown>, { kind: "passed" }>,
  code: "operation_blocked" | "model_selection_blocked" | "input_handled",
): CookieError {
  const { plugin, reason, kind } = outcome;
  const said = kind === "failure" ? reason : `${plugin}: ${reason}`;
  return new CookieError(kind === "failure" ? "operation_blocked" : code, said, {
    data: { plugin, reason },
  });
}
