import type { RunId, SessionId } from "@cookie-agent/sdk/protocol";
import type { SessionRights } from "../plugin/host-services.ts";
import type { PluginHost } from "../plugin/plugin-host.ts";
import type { ArgumentChecker } from "./check-arguments.ts";

/** What dispatch needs of the plugin room. */
export type ToolPlugins = Pick<
  PluginHost,
  | "plugins"
  | "currentTool"
  | "resolveTool"
  | "warm"
  | "prepare"
  | "revalidate"
  | "discard"
  | "call"
  | "stdin"
>;

/** On whose behalf calls run; identity in a call comes from here, never from its arguments. */
export interface DispatchContext {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly runId: RunId;
  /** Canonical. */
  readonly cwd: string;
  /** Canonical. */
  readonly workspaceRoot: string;
  /** What plugins may learn of the session through host services; absent: nothing. */
  readonly session?: SessionRights;
}

/** What a preparation needs. */
export interface PrepareStages {
  readonly plugins: ToolPlugins;
  /** The plugin that serves a name now (E-071); undefined: nobody. */
  ownerOf(name: string): string | undefined;
  /** One per kernel: it keeps compiled schemas. */
  readonly checker: ArgumentChecker;
}
