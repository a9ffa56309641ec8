import { CookieError } from "../protocol/errors.ts";

export interface AwaitAnswerOptions {
  readonly method: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly cancelGraceMs?: number;
  /** Asks the peer to stop; called at most once. */
  cancelPeer(): void;
}

/**
 * Waits for an answer under a deadline and a signal. After either, the peer has `cancelGraceMs` to answer: its result
 * still counts, its error gives way to `timeout` or `cancelled`.
 */
export function awaitAnswer<T>(answer: Promise<T>, options: AwaitAnswerOptions): Promise<T> {
  const { signal, timeoutMs, cancelGraceMs = 0, method } = options;
  return new Promise<T>((resolve, reject) => {
    let interruption: CookieError | undefined;
    let timer: NodeJS.Timeout | undefined;

    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    const interrupt = (error: CookieError) => {
      release();
      interruption = error;
      options.cancelPeer();
      if (cancelGraceMs > 0) timer = setTimeout(() => reject(error), cancelGraceMs);
      else reject(error);
    };
    const onAbort = () => interrupt(new CookieError("cancelled", `${method} was cancelled`));

    signal?.addEventListener("abort", onAbort, { once: true });
    if (timeoutMs !== undefined) {
      const message = `${method} was not answered within ${Math.round(timeoutMs)} ms`;
      timer = setTimeout(() => interrupt(new CookieError("timeout", message)), timeoutMs);
    }
    answer.then(
      (value) => {
        release();
        resolve(value);
      },
      (error: Error) => {
        release();
        reject(interruption ?? error);
      },
    );
  });
}
