import {
  CookieError,
  isCookieError,
  type JsonObject,
  type ToolCallError,
  type ToolCallResult,
  type ToolResult,
} from "@cookie-agent/sdk/protocol";
import type { CapturedOutput } from "../artifact/capture-output.ts";
import { discardedOf } from "../plugin/discarded.ts";
import { safeLines, safeText, shownLines } from "../support/safe-text.ts";
import type { CallOutput } from "./call-output.ts";
import { type CallEnd, MAX_ERROR_BYTES } from "./dispatch-stages.ts";
import type { PreparedCall } from "./prepare-call.ts";

/** Where the media of a result goes, in its record. */
export type PlacedMedia = Pick<ToolResult, "attachments" | "additional_messages">;

const MAX_DISPLAY_BYTES = 64 * 1024;
/** Of a result's text (T-135). */
export const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

/**
 * Turns a plugin's checked answer into the call's end; rejects with what the capture or `attach` reports. A plugin may answer
 * properly after a cancel; the outcome is `cancelled` all the same (E-105).
 */
export async function completeCall(
  call: PreparedCall,
  answer: ToolCallResult,
  output: CallOutput,
  cancelled: boolean,
  attach: (attachments: NonNullable<ToolCallResult["attachments"]>) => Promise<PlacedMedia>,
): Promise<CallEnd> {
  await takeText(call, answer, output);
  const { attachments = [] } = answer;
  const media: PlacedMedia =
    attachments.length === 0 || cancelled ? { attachments: [] } : await attach(attachments);
  const captured = await output.finish({ incomplete: cancelled });
  const result: ToolResult = {
    title: titleOf(call, answer),
    output: captured?.rendered ?? answer.content ?? "",
    display: answer.display === undefined ? null : shownLines(answer.display, MAX_DISPLAY_BYTES),
    metadata: metadataOf(answer),
    retained_output: captured?.retained ?? null,
    ...media,
  };
  if (cancelled) return { outcome: "cancelled", result, error: CANCELLED };
  if (answer.failed !== true) return { outcome: "completed", result, error: null };
  const message = `${call.bound.name} reported a failure; its output says more`;
  return { outcome: "failed", result, error: { code: "execution_failed", message } };
}

/** The end of a call that did not complete; what it printed stays, marked incomplete (T-041, T-042). */
export async function failCall(
  call: PreparedCall,
  error: unknown,
  output: CallOutput,
  cancelled: boolean,
): Promise<CallEnd> {
  const captured = await keepAccepted(output);
  const result = captured ? partialResult(call, captured) : null;
  // Whatever followed from the cancel, the cancel is why the call ended.
  const note = discardedNote(error);
  const ended = cancelled ? CANCELLED : callError(error, MAX_ERROR_BYTES - note.length);
  return {
    outcome: cancelled ? "cancelled" : "failed",
    result,
    error: { ...ended, message: `${ended.message}${note}` },
  };
}

/** How much came too late to count, in words; empty when nothing did (T 1.11). */
function discardedNote(error: unknown): string {
  const { results, progress } = discardedOf(error);
  const parts = [
    ...(results > 0 ? [`${results} late result`] : []),
    ...(progress > 0 ? [`${progress} progress update${progress === 1 ? "" : "s"}`] : []),
  ];
  return parts.length === 0 ? "" : `; discarded: ${parts.join(", ")}`;
}

/** The end of a call that never reached its plugin. */
export function neverRan(error: unknown): CallEnd {
  if (!isCookieError(error, "cancelled")) {
    return { outcome: "failed", result: null, error: callError(error) };
  }
  const message = "the call was cancelled before it started; it never ran";
  return { outcome: "cancelled", result: null, error: { code: "cancelled", message } };
}

const CANCELLED: ToolCallError = {
  code: "cancelled",
  message: "the call was cancelled while it ran",
};

/** The text of an answer that was not streamed; opt-out tools are not captured but bounded (T-047). */
async function takeText(
  call: PreparedCall,
  answer: ToolCallResult,
  output: CallOutput,
): Promise<void> {
  const { name, tool } = call.bound;
  const { content, outputs = [] } = answer;
  if (tool.truncation === "opt_out") {
    if (content === undefined) {
      throw new CookieError("protocol_violation", `${name} may only answer with content`);
    }
    if (Buffer.byteLength(content, "utf8") <= MAX_OUTPUT_BYTES) return;
    throw new CookieError(
      "resource_limit",
      `${name} returned more than ${MAX_OUTPUT_BYTES} bytes; ask for less`,
    );
  }
  if (content !== undefined) await output.write(null, content);
  for (const { stream, text } of outputs) await output.write(stream, text);
}

function titleOf({ presentation }: PreparedCall, { title }: ToolCallResult): string {
  if (title === undefined) return presentation.title;
  return title.trim() === "" ? "Tool result" : safeText(title, 1024);
}

/** What the plugin says of its result stands apart from what the tool says in it (T-130). */
function metadataOf({ metadata, is_error: isError }: ToolCallResult): JsonObject {
  return { ...metadata, ...(isError !== undefined && { plugin: { is_error: isError } }) };
}

async function keepAccepted(output: CallOutput): Promise<CapturedOutput | undefined> {
  if (output.acceptedBytes === 0) {
    output.discard();
    return undefined;
  }
  try {
    return await output.finish({ incomplete: true });
  } catch {
    // The call has failed already; what cannot be kept of it changes nothing about why.
    return undefined;
  }
}

function partialResult({ presentation }: PreparedCall, captured: CapturedOutput): ToolResult {
  return {
    title: presentation.title,
    output: captured.rendered,
    display: null,
    metadata: {},
    retained_output: captured.retained,
    attachments: [],
  };
}

function callError(error: unknown, maxBytes = MAX_ERROR_BYTES): ToolCallError {
  if (!isCookieError(error)) {
    return { code: "internal", message: "the call failed inside the engine" };
  }
  const message = safeLines(error.message, maxBytes);
  return {
    code: safeText(error.code, 128),
    message: message === "" ? safeText(error.code, 128) : message,
  };
}
