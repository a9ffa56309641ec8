import type { EventPayload, SessionMeta, ToolCallError } from "@cookie-agent/sdk/protocol";
import { printable } from "./printable.ts";

/** What fits on a line of a record. */
const EXCERPT_CHARS = 120;

/** The head of a session's record. */
export function describeSession(session: SessionMeta): string {
  const { agent, model } = session.creation_selection;
  const lines = [
    `session   ${session.session_id}${session.handle === undefined ? "" : ` (${session.handle})`}`,
    `title     ${session.title ?? ""}`,
    `status    ${session.status}${session.access === "foreign" ? ", owned by another process" : ""}`,
    `agent     ${agent}, ${model.model}${model.variant === null ? "" : ` (${model.variant})`}`,
    `directory ${session.cwd_identity}`,
  ];
  lines.push(...describeSkipped(session));
  return `${lines.map((line) => printable(line).trimEnd()).join("\n")}\n`;
}

/** One line for each piece of its log that could not be read. */
export function describeSkipped({ skipped_events }: SessionMeta): string[] {
  return skipped_events.map(({ seq, line, reason }) => {
    const place = seq === undefined ? `line ${line}` : `event ${seq}`;
    return `unreadable ${place}: ${reason}`;
  });
}

/** One line for an event that a reader of the record wants to see; null for the others. */
export function describeEvent(payload: EventPayload): string | null {
  switch (payload.type) {
    case "user_input_submitted":
      return row("user", payload.input);
    case "user_input_transformed":
      return row("plugin", `changed what was said: ${payload.original_input}`);
    case "message_injected":
      return row("plugin", `added a ${payload.role} message: ${payload.input}`);
    case "model_turn_committed": {
      const text = payload.turn.content
        .filter((part) => part.type === "text")
        .map((part) => part.text)
        .join("");
      return text === "" ? null : row("model", text);
    }
    case "tool_call_started":
      return row("call", `${payload.tool} ${payload.presentation.primary_argument ?? ""}`);
    case "tool_call_terminated":
      return payload.error === null
        ? row(payload.outcome, payload.result?.output ?? "")
        : row(payload.outcome, describeCallError(payload.error));
    case "approval_finalized": {
      const { status, source, reason } = payload.decision;
      return row("approval", `${status} by ${source} (${reason})`);
    }
    case "internal_agent_failed":
      return row("agent", `failed: ${payload.failure.message}`);
    case "model_fallback":
      return row("fallback", `${payload.from.model} to ${payload.to.model}`);
    case "context_checkpoint_committed": {
      const { input_tokens_before: before, input_tokens_after: after } = payload.budgets;
      return row("summary", `of the conversation so far: ${before} to ${after} tokens`);
    }
    case "context_rehydrated":
      return row("files", payload.files.map(({ path }) => path).join(", "));
    case "run_completed":
      return row("run", "completed");
    case "run_failed":
      return row("run", `failed: ${payload.error.message}`);
    case "run_cancelled":
      return row("run", `cancelled: ${payload.reason ?? ""}`);
    case "run_interrupted":
      return row("run", `interrupted: ${payload.reason ?? ""}`);
    case "session_reverted":
      return row("revert", `what came after event ${payload.through_seq} no longer counts`);
    case "session_title_committed":
      return payload.change.kind === "user_set" ? row("title", payload.change.title) : null;
    case "plugin_event_added":
      return row("plugin", `${payload.plugin} published ${payload.name}`);
    case "plugin_diagnostic": {
      const { plugin, kind, count, message } = payload;
      return row("plugin", `${plugin}: ${kind}, ${count} times: ${message}`);
    }
    default:
      return null;
  }
}

/** Why a call has no result. A denial is written for the model, as JSON. */
export function describeCallError({ code, message }: ToolCallError): string {
  if (code !== "permission_denied") return message;
  try {
    return `denied (${(JSON.parse(message) as { reason: string }).reason})`;
  } catch {
    return message;
  }
}

function row(kind: string, text: string): string {
  const line = printable(text).trim();
  const shown = line.length > EXCERPT_CHARS ? `${line.slice(0, EXCERPT_CHARS - 1)}…` : line;
  return `${kind.padEnd(10)} ${shown}`.trimEnd();
}
