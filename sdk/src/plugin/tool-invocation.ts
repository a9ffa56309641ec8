import type { ToolCallResult } from "../protocol/plugin-methods.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { Emit } from "./emit.ts";
import type { HostClient } from "./host-client.ts";

/** What one call is told, and what it may do while it runs. */
export interface ToolInvocation<Args = JsonObject, State = unknown> {
  /** Parsed by the tool's schema, as `prepare.run` normalized them. */
  readonly args: Args;
  readonly tool: string;
  readonly sessionId: string;
  readonly runId: string;
  /** Key of this call on the wire. */
  readonly invocationId: string;
  readonly cwd: string;
  readonly workspaceRoot: string;
  /** First label of the first resource; null for a name-only check. */
  readonly resource: string | null;
  /** What `prepare.run` kept for this call; undefined when it kept nothing. */
  readonly state: State | undefined;
  /** Aborts when the call is cancelled or timed out, or the kernel has gone; then clean up and return within 2 s. */
  readonly signal: AbortSignal;
  /** Standard input; null unless the tool's `stdinArgument` opened it. Ends at eof and when the call ends. */
  readonly stdin: AsyncIterable<Uint8Array> | null;
  /** What the model will see of the output; a tool need not cut anything itself. */
  readonly limits: { readonly maxLines: number; readonly maxBytes: number };
  readonly host: HostClient;
  /**
   * Streams output or news. Any amount of it may be given; it is split as the wire needs. Await it: it waits while more
   * than 1 MiB is not yet captured by the kernel (E-103). Bytes must not change before it resolves.
   */
  progress(delta: ProgressDelta): Promise<void>;
  /** Publishes an event of the plugin's own in this session, once per call; needs the plugin's `publish`. */
  readonly emit: Emit;
}

/** One step of a running call; any of its members may be absent. */
export interface ProgressDelta {
  /** Text or bytes of the one stream, or chunks of named streams; lossless. */
  readonly output?: string | Uint8Array | readonly (OutputChunk | OutputBytes)[];
  /** One short line about what goes on; at most 1 KiB is kept. */
  readonly message?: string;
  /** Replaces what a screen shows for this call; at most 1 KiB is kept. */
  readonly display?: string;
}

/** Text of one named stream. */
export interface OutputChunk {
  /** One of the streams that the tool's `output` declares. */
  readonly stream: string;
  readonly text: string;
}

/**
 * Bytes of one named stream, meant as UTF-8: cheaper than text where there is much. A character may be cut between
 * chunks; what is no UTF-8 becomes U+FFFD.
 */
export interface OutputBytes {
  /** One of the streams that the tool's `output` declares. */
  readonly stream: string;
  readonly bytes: Uint8Array;
}

/** The answer of a call: exactly one of `content`, `outputs`, `streamed`, plus options (E-092). */
export type ToolAnswer = ToolAnswerOptions &
  (
    | { readonly content: string }
    | { readonly outputs: readonly OutputChunk[] }
    /** Everything was sent with `progress`. */
    | { readonly streamed: true }
  );

export interface ToolAnswerOptions {
  /** A completed result that the model should read as an error. */
  readonly isError?: boolean;
  /** Outcome `failed`, with complete output. */
  readonly failed?: boolean;
  /** At most 1 KiB. */
  readonly title?: string;
  /** For screens only, at most 64 KiB. */
  readonly display?: string;
  /** At most 64 KiB of JSON. */
  readonly metadata?: JsonObject;
  /** Media for the model: URIs of artifacts or files in `paths.scratch`. */
  readonly attachments?: ToolCallResult["attachments"];
}
