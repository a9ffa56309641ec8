import type { Logger } from "@cookie-agent/kernel";
import type { SessionNews } from "@cookie-agent/sdk/client";
import type { EventPayload, SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import { describeCallError } from "../describe-session.ts";
import { jsonLine, printable, printableLines } from "../printable.ts";
import { writeError } from "../report-error.ts";
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
    const { format, verbose, progress } = this.#options;
    if (format === "json") this.#write(jsonLine({ type: "event", event }));
    progress?.onPayload(payload);
    if (payload.type === "model_fallback") {
      const { from, to, error } = payload;
      this.notice(
        `model ${from.model} failed (${error.kind}: ${error.message}); going on with ${to.model}`,
      );
    } else if (verbose) {
      const line = describe(payload);
      if (line !== null) this.notice(line);
    }
  }

  onSessionEvent({ payload }: StoredEvent): void {
    if (payload.type !== "plugin_diagnostic" || payload.kind !== "compaction_failed") return;
    this.notice(payload.message);
  }

  onOutput(news: Extract<SessionNews, { type: "output" | "output_gap" }>): void {
    const { format, verbose } = this.#options;
    if (format !== "json" || !verbose) return;
    const { callId: call_id, stream } = news;
    this.#write(
      jsonLine(
        news.type === "output"
          ? {
              type: "tool_output",
              call_id,
              stream,
              byte_offset: news.byteOffset,
              data: news.data,
            }
          : { type: "tool_output_gap", call_id, stream, next_offset: news.nextOffset },
      ),
    );
  }

  /** The kernel's operational news, a plugin's stderr among them, as lines of this report. */
  readonly logger: Logger = {
    log: (level, message, fields) => {
      const plugin = fields?.["plugin"];
      const origin = typeof plugin === "string" ? `${plugin}: ` : "";
      this.notice(`${level === "info" ? "" : `${level}: `}${origin}${message}`);
    },
  };

  /** Of the same news only what nobody may miss. */
  readonly noticesOnly: Logger = {
    log: (level, message, fields) => {
      if (fields?.["notice"] === true) this.logger.log(level, message, fields);
    },
  };

  /** Something the user should read whatever the output format is. */
  notice(text: string): void {
    const line = `cookie run: ${printable(text)}`;
    const { progress } = this.#options;
    if (progress === null) process.stderr.write(`${line}\n`);
    else progress.note(line);
  }

  finish(sessionId: SessionId, end: RunEnd): void {
    const { format, sink, progress } = this.#options;
    progress?.end();
    if (format === "text" && end.status === "completed" && end.finalText !== null) {
      const text = sink.isTerminal ? printableLines(end.finalText) : end.finalText;
      this.#write(text.endsWith("\n") ? text : `${text}\n`);
    }
    if (format === "json") this.#write(jsonLine(summaryOf(sessionId, end)));
    if (end.error !== null) writeError(end.error, format === "json");
  }

  #write(text: string): void {
    const { sink, progress } = this.#options;
    if (sink.isTerminal) progress?.erase();
    sink.write(text);
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
        : `call ${payload.outcome}: ${describeCallError(payload.error)}`;
    case "approval_requested":
      return `approval needed: ${payload.request.title}`;
    case "approval_finalized":
      return `approval ${payload.decision.status} (${payload.decision.reason})`;
    default:
      return null;
  }
}
