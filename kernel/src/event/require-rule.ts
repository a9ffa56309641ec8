import { CookieError } from "@cookie-agent/sdk/protocol";

/** Throws the `engine` error of a broken rule: a mistake of the kernel, not of a user (S-048). */
export function requireRule(
  holds: boolean,
  payload: { readonly type: string },
  problem: string,
): asserts holds {
  if (holds) return;
  throw new CookieError("engine", `the event ${payload.type} cannot be appended: ${problem}`);
}
