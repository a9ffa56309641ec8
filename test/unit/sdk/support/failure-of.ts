import { type CookieError, isCookieError } from "@cookie-agent/sdk/protocol";

/** The error a promise rejects with; fails the test when it resolves or rejects with anything else. */
export async function failureOf(promise: Promise<unknown>): Promise<CookieError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isCookieError(error)) return error;
  throw new Error("expected a CookieError", { cause: error });
}

/** The code a promise rejects with, or `no error`. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no error",
    (error: unknown) => (isCookieError(error) ? error.code : "another error"),
  );
}
