import { CookieError } from "../protocol/errors.ts";
import { HOOKS, type HookParams, type HookResult } from "../protocol/hooks.ts";
import { HookName } from "../protocol/manifest.ts";
import type { Emit } from "./emit.ts";
import type { HostClient } from "./host-client.ts";

/** What a hook runs with. */
export interface HookContext {
  readonly sessionId: string;
  /** Aborted when the kernel does not wait any longer: the hook took too long, or what it looks at was cancelled. */
  readonly signal: AbortSignal;
  /** Kernel services until the hook has answered; each needs its grant. */
  readonly host: HostClient;
  /** Publishes one event of the plugin's own until the hook has answered. */
  readonly emit: Emit;
}

/**
 * One hook. It answers within the entry's `interception_timeout_ms` (2 s); a hook that does not, or that throws, is
 * skipped, unless the user made the plugin `required`: then it blocks. Returning nothing changes nothing.
 */
export type HookHandler<H extends HookName> = (
  params: Omit<HookParams<H>, "session_id" | "context_id">,
  context: HookContext,
) => HookResult<H> | undefined | Promise<HookResult<H> | undefined>;

/**
 * What the plugin looks at, and may change or stop, on its way through the kernel (E-160). The manifest lists exactly
 * the hooks that are here. Plugins are asked one after another in configuration order; each sees what the one before
 * has made of it. Names and values are those of the wire.
 */
export interface HookHandlers {
  /** A person's input before it is committed: `allow`, `transform` with `new_text`, or `handled`, which starts no run. */
  readonly user_before_input?: HookHandler<"user_before_input">;
  /** A model before it is first used, changed or fallen back to: `allow` or `block`. */
  readonly model_before_select?: HookHandler<"model_before_select">;
  /** A run while it is set up: adds to or replaces its system prompt, or injects a message before the input. */
  readonly agent_before_start?: HookHandler<"agent_before_start">;
  /** The messages and parameters of each attempt: `keep` or `replace`. */
  readonly model_before_request?: HookHandler<"model_before_request">;
  /** The request's headers without credentials: `set` and `delete`. */
  readonly provider_before_headers?: HookHandler<"provider_before_headers">;
  /** The whole request in the kernel's form: `keep` or `replace`. */
  readonly provider_before_request?: HookHandler<"provider_before_request">;
  /** Status and headers of a response; observes only. */
  readonly provider_after_response?: HookHandler<"provider_after_response">;
  /** What the model said, before it is committed: `keep` or `replace` with the new `content`. */
  readonly message_end?: HookHandler<"message_end">;
  /**
   * A permitted call before it runs: `allow`, perhaps with `modified_arguments` that lead to what was approved, or
   * `block` with a `message_to_model`. Denied calls never come here.
   */
  readonly tool_before_call?: HookHandler<"tool_before_call">;
  /** What a call that ran tells the model: `keep`, or `replace` with `replacement_content`; a `note` is added to it. */
  readonly tool_after_result?: HookHandler<"tool_after_result">;
  /** A compaction before it summarizes: adds to or overrides its instructions, or cancels it. */
  readonly session_before_compact?: HookHandler<"session_before_compact">;
  /** A fork: `allow` or `block`. */
  readonly session_before_fork?: HookHandler<"session_before_fork">;
  /** A revert: `allow`, `block`, or `override` its instructions. */
  readonly session_before_revert?: HookHandler<"session_before_revert">;
}

const HOOK_NAMES: readonly HookName[] = HookName.options;

/** The hooks that have a handler, in the order of the protocol; `refuse` makes the error for what is no hook. */
export function declaredHooks(
  hooks: HookHandlers | undefined,
  refuse: (member: string, problem: string) => CookieError,
): HookName[] {
  const handlers = Object.entries(hooks ?? {}).filter(([, handler]) => handler !== undefined);
  for (const [name, handler] of handlers) {
    if (!HookName.safeParse(name).success) {
      throw refuse(`hooks.${name}`, `no such hook; expected one of ${HOOK_NAMES.join(", ")}`);
    }
    if (typeof handler !== "function") throw refuse(`hooks.${name}`, "expected a function");
  }
  const names = new Set(handlers.map(([name]) => name));
  return HOOK_NAMES.filter((name) => names.has(name));
}

/** Runs one hook; nothing, or no answer at all, is the answer that changes nothing. */
export async function runHook<H extends HookName>(
  name: H,
  handler: HookHandler<H>,
  request: HookParams<H>,
  context: Omit<HookContext, "sessionId">,
): Promise<HookResult<H>> {
  // The cancellation may have overtaken the request while it was queued.
  if (context.signal.aborted) throw new CookieError("cancelled", "cancelled");
  const { session_id: sessionId, context_id: _, ...params } = request;
  const answer = await handler(params, { ...context, sessionId });
  return answer ?? (unchanged(name) as HookResult<H>);
}

function unchanged(name: HookName): object {
  const { result } = HOOKS[name];
  return (
    [{ action: "allow" }, { action: "keep" }].find((answer) => result.safeParse(answer).success) ??
    {}
  );
}
