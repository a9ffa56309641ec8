import { CookieError, isCookieError } from "@cookie-agent/sdk/protocol";

/** What a plugin sent for a call that was ended before it could count (T 1.11). */
export interface Discarded {
  readonly results: number;
  readonly progress: number;
}

/** The same error, knowing what else was thrown away. */
export function withDiscarded(error: CookieError, more: Partial<Discarded>): CookieError {
  const before = discardedOf(error);
  const discarded: Discarded = {
    results: before.results + (more.results ?? 0),
    progress: before.progress + (more.progress ?? 0),
  };
  if (discarded.results + discarded.progress === 0) return error;
  return new CookieError(error.code, error.message, {
    cause: error.cause,
    data: { ...error.data, discarded },
  });
}

export function discardedOf(error: unknown): Discarded {
  const discarded = isCookieError(error) ? error.data["discarded"] : undefined;
  return isDiscarded(discarded) ? discarded : { results: 0, progress: 0 };
}

function isDiscarded(value: unknown): value is Discarded {
  return (
    typeof value === "object" &&
    value !== null &&
    "results" in value &&
    typeof value.results === "number" &&
    "progress" in value &&
    typeof value.progress === "number"
  );
}
