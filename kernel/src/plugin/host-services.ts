import type {
  ArtifactsRead,
  ArtifactsWrite,
  Digest,
  HostGrant,
  HostLog,
  ParamsOf,
  PermissionAsk,
  ResultInput,
  RunId,
  SessionId,
  SessionInfo,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import type { MediaTarget } from "../config/media-target.ts";
import type { EventServices } from "./event-services.ts";

/** What the rooms above tell of the session that a plugin acts on; asked only when a service needs it. */
export interface SessionRights {
  info(): ResultInput<typeof SessionInfo>;
  /** What the selected model takes beside text. */
  media(): MediaTarget;
  /** Whether the rules in force now allow reading the label; what they would ask for is not allowed (E-119). */
  mayRead(label: string): boolean;
}

export type PermissionQuestion = Pick<ParamsOf<typeof PermissionAsk>, "resources" | "reason">;

/** Decides what a running call asks for; a refusal is a value (E-120). */
export type AskPermission = (
  question: PermissionQuestion,
  signal: AbortSignal,
) => Promise<ResultInput<typeof PermissionAsk>>;

/** On whose behalf a plugin asks: always the context's session, never one the plugin names (E-117). */
export interface CallContext {
  readonly plugin: string;
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  /** Null where a client asks a service of the plugin, and in a hook before the run is recorded. */
  readonly runId: RunId | null;
  /** Null in a hook outside a call. */
  readonly toolCallId: ToolCallId | null;
  /** Absent outside a call. */
  readonly approvedLabels?: readonly string[];
  /** Absent where nobody knows more of the session than its ids. */
  readonly session?: SessionRights;
  /** Absent outside a call. */
  readonly ask?: AskPermission;
  /** Digests of the artifacts that this call has written. */
  readonly written?: Set<Digest>;
}

/** What plugins may ask of the kernel; filled in by the composition root. */
export interface HostServices {
  /** Where attachments, scratch files and media are kept. */
  readonly artifacts: ArtifactStore;
  readArtifact(
    context: CallContext,
    params: ParamsOf<typeof ArtifactsRead>,
  ): Promise<ResultInput<typeof ArtifactsRead>>;
  /** At most 1 MiB. */
  writeArtifact(
    context: CallContext,
    bytes: Uint8Array,
  ): Promise<ResultInput<typeof ArtifactsWrite>>;
  /** A section of the configuration without its secrets; undefined when there is none of that name (E-121). */
  configSection(section: string): Promise<unknown>;
  log(plugin: string, params: ParamsOf<typeof HostLog>): void;
  readonly events: EventServices;
  /** The plugin that runs admitted now would get for a tool's name (E-071); undefined: nobody. */
  toolOwner(name: string): string | undefined;
}

/** The host services this kernel offers; a grant for another one has no effect. */
export const SERVED_GRANTS: readonly HostGrant[] = [
  "artifacts.write",
  "artifacts.read",
  "media",
  "session.info",
  "permission.ask",
];
