import {
  type ContextId,
  CookieError,
  HOOKS,
  type HookName,
  type HookResult,
  type Method,
  type ParamsInput,
} from "@cookie-agent/sdk/protocol";
import type { HookFacts, HookSite } from "./hook-site.ts";
import type { RequestDesk } from "./request-desk.ts";

/** What a plugin that answers in time may lose on the way (E-162). */
const GRACE_MS = 50;

/**
 * Asks one plugin at one hook. It waits no longer for its turn than for the answer, and a hook that is given up cleans
 * up unwatched: whatever it looks at waits for it.
 */
export async function askHook<H extends HookName>(
  desk: RequestDesk,
  request: {
    readonly hook: H;
    readonly plugin: string;
    readonly site: HookSite;
    readonly facts: HookFacts<H>;
    readonly timeoutMs: number;
  },
  signal: AbortSignal,
): Promise<HookResult<H>> {
  const { hook, plugin, site, timeoutMs } = request;
  const method: Method = HOOKS[hook];
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const late = new CookieError("timeout", `the plugin did not answer within ${timeoutMs} ms`);
  let isLate = false;
  const queued = setTimeout(() => {
    isLate = true;
    stop.abort(late);
  }, timeoutMs + GRACE_MS);
  try {
    const answer = await desk.ask(method, {
      signal: stop.signal,
      timeoutMs: timeoutMs + GRACE_MS,
      cleanupMs: 0,
      context: { scope: "request", facts: { plugin, ...site } },
      params: (contextId: ContextId): ParamsInput<Method> => {
        clearTimeout(queued);
        return { ...request.facts, session_id: site.sessionId, context_id: contextId };
      },
    });
    return answer as HookResult<H>;
  } catch (error) {
    throw isLate ? late : error;
  } finally {
    clearTimeout(queued);
    signal.removeEventListener("abort", onAbort);
  }
}
