import { CookieError } from "@cookie-agent/sdk/protocol";

/** 23 days. Node makes one millisecond of a delay beyond 2^31-1, and who waits may add a grace to this. */
const LONGEST_DELAY_MS = 2_000_000_000;

/** The delay that somebody wrote down, at most what timers keep. */
export function keptDelay(delayMs: number): number {
  return Math.min(delayMs, LONGEST_DELAY_MS);
}

/** Settles like `work`, or rejects with `timeout` after `timeoutMs`; the timer never outlives the race. */
export async function withDeadline<T>(
  work: Promise<T>,
  timeoutMs: number,
  message: string,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CookieError("timeout", message)), timeoutMs);
  });
  try {
    return await Promise.race([work, expiry]);
  } finally {
    clearTimeout(timer);
  }
}

/** Settles like `work`, or rejects with `cancelled` as soon as `signal` aborts. */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  message: string,
): Promise<T> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new CookieError("cancelled", message));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits, or returns at once when `signal` aborts. True when the whole time passed. */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const onAbort = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(true);
    }, delayMs);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
