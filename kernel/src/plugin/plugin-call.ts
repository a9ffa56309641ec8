import type {
  Digest,
  ParamsOf,
  ResultOf,
  SessionId,
  ToolsCall,
  ToolsPrepare,
} from "@cookie-agent/sdk/protocol";
import type { AskPermission, SessionRights } from "./host-services.ts";
import type { ProgressNews } from "./progress-news.ts";

/** Params of `plugin/tools/prepare` without the context, which the host grants itself. */
export type PrepareParams = Omit<ParamsOf<typeof ToolsPrepare>, "context_id"> & {
  /** Not on the wire: the root of the session's tree, for host services. */
  readonly rootSessionId?: SessionId;
  /** Not on the wire: what host services may learn of the session. */
  readonly session?: SessionRights;
  /** Not on the wire: the declaration that the run pinned; another one is `operation_changed` (E-074). */
  readonly declarationDigest?: Digest;
};

/** A plugin's answer to a preparation and the process generation that its token belongs to (E-060). */
export type Prepared = ResultOf<typeof ToolsPrepare> & { readonly generation: number };

/** One tool call to dispatch. */
export interface PluginCall {
  readonly params: Omit<ParamsOf<typeof ToolsCall>, "context_id">;
  /** Counted from dispatch, not from queueing (E-052); null: no kernel timeout. */
  readonly timeoutMs: number | null;
  /** The `generation` of the `Prepared` whose token travels with the call; null without a token. */
  readonly generation: number | null;
  readonly rootSessionId: SessionId;
  /** The declaration that the run pinned; another one is `operation_changed` (E-074, E-091). */
  readonly declarationDigest?: Digest;
  /** Labels approved for this call; `artifacts.read` serves them (E-119). */
  readonly approvedLabels?: readonly string[];
  /** What host services may learn of the session. */
  readonly session?: SessionRights;
  /** Answers `permission.ask` (E-120). */
  readonly ask?: AskPermission;
  /**
   * Captures what came; calls of one invocation never overlap. Bytes stay as they are only until it has resolved.
   * A rejection (`resource_limit`, `progress_limit`, `execution_failed`) cancels the call with that error.
   */
  onProgress(news: ProgressNews): Promise<unknown>;
}
