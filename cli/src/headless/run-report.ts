import type { SessionNews } from "@cookie-agent/sdk/client";
import type { EventPayload, SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import type { RunEnd, RunObserver } from "./drive-run.ts";
import type { OutputSink } from "./output-sink.ts";
import type { ProgressLine } from "./progress-line.ts";

export type OutputFormat = "text" | "json" | "none";

export interface ReportOptions {
  readonly format: OutputFormat;
  readonly verbose: boolean;
  readonly sink: OutputSink;
  /** Present when stderr is a terminal. */
  readonly progress: ProgressLine | null;
}

/** What a run tells the outside: results on the sink, news on stderr (C 7.3). */
export class RunReport implements RunObserver {
  readonly #options: ReportOptions;

  constructor(options: ReportOptions) {
    this.#options = options;
  }

  onEvent(event: StoredEvent): void {
    const { payload } = event;
    const { format, verbose, sink, progress } = this.#options;
    if (format === "json") sink.write(`${JSON.stringify({ type: "event", event })}\n`);
    progress?.onPayload(payload);
    if (payload.type === "model_fallback") {
      this.notice(
        `model ${payload.from.model} failed (${payload.error.kind}: ${payload.error.message}); going on with ${payload.to.model}`,
      );
    } else if (verbose) {
      const line = describe(payload);
      if (line !== null) this.notice(line);
    }
  }

  onOutput(news: Extract<SessionNews, { type: "output" | "output_gap" }>): void {
    const { format, verbose, sink } = this.#options;
    if (format !== "json" || !verbose) return;
    const line =
      news.type === "output"
        ? {
            type: "tool_output",
            call_id: news.callId,
            stream: news.stream,
            byte_offset: news.byteOffset,
            data: news.data,
          }
        : {
            type: "tool_output_gap",
            call_id: news.callId,
            stream: news.stream,
            next_offset: news.nextOffset,
          };
    sink.write(`${JSON.stringify(line)}\n`);
  }

  /** Something the user should read whatever the output format is. */
  notice(text: string): void {
    const line = `cookie run: ${text.replace(/\p{Cc}/gu, " ")}`;
    const { progress } = this.#options;
    if (progress === null) process.stderr.write(`${line}\n`);
    else progress.note(line);
  }

  finish(sessionId: SessionId, end: RunEnd): void {
    const { format, sink, progress } = this.#options;
    progress?.end();
    if (format === "text" && end.status === "completed" && end.finalText !== null) {
      sink.write(end.finalText.endsWith("\n") ? end.finalText : `${end.finalText}\n`);
    }
    if (format === "json") sink.write(`${JSON.stringify(summaryOf(sessionId, end))}\n`);
    if (end.error !== null) process.stderr.write(`error: ${oneLine(end.error.message)}\n`);
  }
}

function summaryOf(sessionId: SessionId, end: RunEnd): unknown {
  const { cancellation } = end;
  return {
    type: "summary",
    session_id: sessionId,
    run_id: end.runId,
    status: end.status,
    exit_code: end.exitCode,
    turns: end.turns,
    approval_rejections: end.approvalRejections,
    event_recoveries: end.eventRecoveries,
    cancellation: cancellation === "permission" || cancellation === "user" ? cancellation : null,
    final_text: end.finalText,
    usage: end.usage,
    error: end.error,
  };
}

function describe(payload: EventPayload): string | null {
  switch (payload.type) {
    case "run_started":
      return `run started with agent ${payload.agent.agent}, model ${payload.selection.model.model}`;
    case "model_attempt_started":
      return `request ${payload.attempt_ordinal} to ${payload.resolved_model.model}`;
    case "attempt_abandoned":
      return `request failed: ${payload.error?.message ?? "cancelled"}`;
    case "tool_call_started":
      return `${payload.tool} ${payload.presentation.primary_argument ?? ""}`.trimEnd();
    case "tool_call_terminated":
      return payload.error === null
        ? `call ${payload.outcome}`
        : `call ${payload.outcome}: ${oneLine(payload.error.message)}`;
    case "approval_requested":
      return `approval needed: ${payload.request.title}`;
    case "approval_finalized":
      return `approval ${payload.decision.status} (${payload.decision.reason})`;
    default:
      return null;
  }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").replace(/\p{Cc}/gu, " ");
}
