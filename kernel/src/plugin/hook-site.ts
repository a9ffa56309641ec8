import type {
  HookName,
  HookParams,
  HookResult,
  RunId,
  SessionId,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { SessionRights } from "./host-services.ts";

/** Where a hook happens: whose rights its context carries. */
export interface HookSite {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  /** Null before the run is recorded. */
  readonly runId: RunId | null;
  /** Null outside a call. */
  readonly toolCallId: ToolCallId | null;
  /** Absent before the run is recorded. */
  readonly session?: SessionRights;
}

/** What a hook is told beside its session and context. */
export type HookFacts<H extends HookName> = Omit<HookParams<H>, "session_id" | "context_id">;

/** A plugin that is asked at a hook. */
export interface Interceptor {
  readonly plugin: string;
  /** The user wants the operation stopped when this plugin fails (E-204). */
  readonly required: boolean;
}

/** What a chain needs of the plugins. */
export interface HookPlugins {
  /** In configuration order (E-042). */
  interceptors(hook: HookName): readonly Interceptor[];
  /**
   * One plugin's answer; undefined when the process that runs now does not take part. Rejects with what kept it from
   * answering, `cancelled` among it.
   */
  intercept<H extends HookName>(
    plugin: string,
    hook: H,
    request: { readonly site: HookSite; readonly facts: HookFacts<H> },
    signal: AbortSignal,
  ): Promise<HookResult<H> | undefined>;
}
