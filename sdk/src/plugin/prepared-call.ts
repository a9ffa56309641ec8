import type { PreparedResource } from "../protocol/plugin-methods.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { HostClient } from "./host-client.ts";

/** A call that is being prepared. */
export interface PrepareRequest<Args = JsonObject> {
  readonly args: Args;
  readonly tool: string;
  readonly sessionId: string;
  readonly runId: string;
  /** Key of this call on the wire; the same in `call`. */
  readonly invocationId: string;
  readonly cwd: string;
  readonly workspaceRoot: string;
  /** Aborts when the result is no longer wanted. */
  readonly signal: AbortSignal;
  readonly host: HostClient;
}

/** What a preparation found (E-082). */
export interface PreparedCall<State = unknown> {
  /** 1 to 64 resources that the call will touch. */
  readonly resources: readonly PreparedResource[];
  /** Normalized arguments; they replace the originals for identity and call. */
  readonly arguments?: JsonObject;
  /** Calls with an equal key never overlap; `file:` and `path:` keys hold over all plugins. */
  readonly serialize?: readonly string[];
  /** Kept for the one call that follows; never leaves the process. */
  readonly state?: State;
  /** Frees the state when no call will use it. After `call` started, the state is the call's own. */
  release?(): void | Promise<void>;
  /** Names the call on a screen; default: the tool's name. At most 1 KiB, one line. */
  readonly title?: string;
  /** Shown next to the title; default: the display argument. At most 1 KiB, one line. */
  readonly primaryArgument?: string;
  /** Shown with an approval, for example a diff; at most 64 KiB. */
  readonly detail?: string;
}
