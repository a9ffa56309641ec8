import type {
  ArtifactsRead,
  ArtifactsWrite,
  HostGrant,
  HostLog,
  ParamsOf,
  ResultInput,
  RunId,
  SessionId,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { EventServices } from "./event-services.ts";

/** On whose behalf a plugin asks: always the context's session, never one the plugin names (E-117). */
export interface CallContext {
  readonly plugin: string;
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly runId: RunId;
  readonly toolCallId: ToolCallId;
  /** Absent outside a call. */
  readonly approvedLabels?: readonly string[];
}

/** What plugins may ask of the kernel; filled in by the composition root. */
export interface HostServices {
  readArtifact(
    context: CallContext,
    params: ParamsOf<typeof ArtifactsRead>,
  ): Promise<ResultInput<typeof ArtifactsRead>>;
  /** At most 1 MiB. */
  writeArtifact(
    context: CallContext,
    bytes: Uint8Array,
  ): Promise<ResultInput<typeof ArtifactsWrite>>;
  log(plugin: string, params: ParamsOf<typeof HostLog>): void;
  readonly events: EventServices;
}

/** The host services this kernel offers; a grant for another one has no effect. */
export const SERVED_GRANTS: readonly HostGrant[] = ["artifacts.write", "artifacts.read"];
