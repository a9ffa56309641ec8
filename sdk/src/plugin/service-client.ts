import type {
  DelegationCancel,
  DelegationResult,
  DelegationStart,
  DelegationTargets,
} from "../protocol/host-delegation.ts";
import type { GoalsGet, GoalsUpdate } from "../protocol/host-goals.ts";
import type { MediaDeliver, MediaSniff } from "../protocol/host-media.ts";
import type { MessagesSend } from "../protocol/host-messages.ts";
import type { ArtifactsWrite } from "../protocol/host-methods.ts";
import type { PermissionAsk, SessionInfo } from "../protocol/host-session.ts";
import type { SkillsCommit, SkillsGet, SkillsList } from "../protocol/host-skills.ts";
import type { Method, ParamsInput, ResultOf } from "../protocol/method.ts";
import type { ToolCallResult } from "../protocol/plugin-methods.ts";
import type { AttachmentFile } from "./save-attachment.ts";

export type ParamsFor<M extends Method> = Omit<ParamsInput<M>, "context_id" | "_meta">;
type Attachment = NonNullable<ToolCallResult["attachments"]>[number];

/**
 * Services of the kernel for one request to the plugin; each lasts until that request is answered and acts on its
 * session only. They reject with `not_granted` without the capability named here (`capabilities.host`), with
 * `context_invalid` once the request is answered; what is "in a call" does so during a preparation too. A service that
 * this kernel does not offer is granted to nobody: look at `services` of the plugin's context.
 */
export interface ServiceClient {
  /**
   * Some bytes of an artifact, text or not: at most 1 MiB from `byteOffset`. Needs `artifacts.read`; rejects as
   * `readArtifact` does.
   */
  readArtifactBytes(range: {
    readonly uri: string;
    readonly byteOffset: number;
    readonly byteLimit: number;
  }): Promise<{
    readonly bytes: Uint8Array;
    /** Where to go on; null at the end. */
    readonly nextByte: number | null;
    readonly totalBytes: number;
  }>;
  /**
   * Stores a file of the scratch directory, at most 64 MiB, as an artifact of the session. Needs `artifacts.write`;
   * rejects with `unsupported_security` for a link or a file with a second name, `resource_limit`, `execution_failed`.
   */
  writeArtifactFile(scratchName: string): Promise<ResultOf<typeof ArtifactsWrite>>;
  /**
   * Saves bytes in the scratch directory under a name of their own and yields what goes into the answer's
   * `attachments`. Needs no grant; the kernel checks media when the answer arrives, at most 64 MiB, and takes the file.
   */
  attach(bytes: Uint8Array, file?: AttachmentFile): Promise<Attachment>;
  /** Facts about the session, private to the harness. Needs `session.info`; `model` only above tier untrusted. */
  sessionInfo(): Promise<ResultOf<typeof SessionInfo>>;
  /**
   * Asks, in a call, for permission to touch more than it was prepared for; waits as long as that takes while the call's
   * timer stands still. Needs `permission.ask`. A denial is a result; rejects with `invalid_params` for an action that
   * the tool does not declare.
   */
  askPermission(question: ParamsFor<typeof PermissionAsk>): Promise<ResultOf<typeof PermissionAsk>>;
  /** What an artifact, a scratch file or some bytes (base64, at most 64 KiB) are, by content. Needs `media`. */
  sniffMedia(
    content: MediaContent & { readonly data?: string },
  ): Promise<ResultOf<typeof MediaSniff>>;
  /**
   * Tells, in a call, whether the selected model would get this as an attachment. Needs `media`; rejects with
   * `media_type`, `media_model`, `media_size` or `media_family`.
   */
  deliverMedia(
    content: MediaContent & { readonly filename?: string },
  ): Promise<ResultOf<typeof MediaDeliver>>;
  /** Child sessions; all but `targets` in a call. Needs `delegation`. Rejects with `unknown_subagent` and others. */
  readonly delegation: {
    start(child: ParamsFor<typeof DelegationStart>): Promise<ResultOf<typeof DelegationStart>>;
    /** With `wait` it waits for the child's end, and the call's timer stands still. */
    result(page: ParamsFor<typeof DelegationResult>): Promise<ResultOf<typeof DelegationResult>>;
    cancel(child: ParamsFor<typeof DelegationCancel>): Promise<ResultOf<typeof DelegationCancel>>;
    targets(): Promise<ResultOf<typeof DelegationTargets>["targets"]>;
  };
  /** Sends, in a call, a message to another session of the tree; a repetition sends nothing. Needs `messaging`. */
  sendMessage(message: ParamsFor<typeof MessagesSend>): Promise<ResultOf<typeof MessagesSend>>;
  /** The root session's goal, in a call. Needs `goals`. `update` rejects with `goal_absent` or `goal_terminal`. */
  readonly goals: {
    get(): Promise<ResultOf<typeof GoalsGet>["goal"]>;
    update(
      items: ParamsFor<typeof GoalsUpdate>["items"],
    ): Promise<ResultOf<typeof GoalsUpdate>["goal"]>;
  };
  /** Needs `skills.read`; `commit`, in a call, needs `skills.commit`. */
  readonly skills: {
    list(): Promise<ResultOf<typeof SkillsList>["skills"]>;
    get(name: string, args?: string): Promise<ResultOf<typeof SkillsGet>>;
    commit(skill: ParamsFor<typeof SkillsCommit>): Promise<ResultOf<typeof SkillsCommit>>;
  };
}

/** An `artifact://` URI or the name of a file in the scratch directory; exactly one of them. */
export interface MediaContent {
  readonly artifact?: string;
  readonly scratch?: string;
}
