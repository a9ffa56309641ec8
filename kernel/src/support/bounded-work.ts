import { createContext, Script } from "node:vm";

interface Desk {
  work: () => unknown;
}

let opened: { readonly desk: Desk; readonly script: Script } | undefined;

/**
 * The result of work on this thread that may never end, such as a schema that refers to itself in ever more ways. Throws
 * what `work` throws, and after `limitMs` what `onLimit` makes.
 */
export function withinLimit<T>(work: () => T, limitMs: number, onLimit: () => Error): T {
  opened ??= {
    desk: createContext({ work: () => undefined }) as Desk,
    script: new Script("work()"),
  };
  const { desk, script } = opened;
  let result: { readonly value: T } | undefined;
  desk.work = () => {
    result = { value: work() };
  };
  try {
    script.runInContext(desk, { timeout: limitMs });
  } catch (error) {
    if (isLimit(error)) throw onLimit();
    throw error;
  } finally {
    desk.work = () => undefined;
  }
  if (result === undefined) throw onLimit();
  return result.value;
}

/** An error of the context, so none of our classes. */
function isLimit(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
