import type { RunId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { type CapturedOutput, OutputCapture } from "../artifact/capture-output.ts";
import type { ProgressNews } from "../plugin/progress-news.ts";
import { shown, shownLines } from "../support/safe-text.ts";
import { type CommittedTurn, type DispatchStages, draft } from "./dispatch-stages.ts";
import type { OutputFeed } from "./output-hub.ts";
import type { PreparedCall } from "./prepare-call.ts";

/**
 * Everything one running call prints: output to the capture and to whoever watches, news to the log (T 1.9). A tool
 * that opts out of truncation cannot stream and has no capture.
 */
export class CallOutput {
  readonly #toolCallId: ToolCallId;
  readonly #runId: RunId;
  readonly #log: DispatchStages["log"];
  readonly #capture: OutputCapture | undefined;
  readonly #feed: OutputFeed;
  #streamed = false;

  constructor(call: PreparedCall, turn: CommittedTurn, stages: DispatchStages) {
    const { output, truncation } = call.bound.tool;
    this.#toolCallId = call.toolCallId;
    this.#runId = turn.runId;
    this.#log = stages.log;
    this.#feed = stages.outputs.begin({
      sessionId: turn.sessionId,
      toolCallId: call.toolCallId,
      streams: output.mode === "named" ? output.streams : [],
    });
    this.#capture =
      truncation === "opt_out"
        ? undefined
        : new OutputCapture({
            store: stages.artifacts,
            rootId: turn.rootSessionId,
            output,
            limits: stages.limits,
            onKept: (stream, parts) => this.#feed.write(stream, parts),
          });
  }

  /** Whether output came as deltas. */
  get streamed(): boolean {
    return this.#streamed;
  }

  get acceptedBytes(): number {
    return this.#capture?.acceptedBytes ?? 0;
  }

  /** Takes what checked deltas brought; rejects with what the capture reports. */
  async accept({ output, message, display }: ProgressNews): Promise<void> {
    for (const { stream, data } of output) {
      this.#streamed = true;
      await this.write(stream, data);
    }
    if (message !== undefined || display !== undefined) {
      this.#log.appendStream(
        draft(this.#runId, {
          type: "tool_call_progress",
          tool_call_id: this.#toolCallId,
          message: shown(message ?? ""),
          ...(display !== undefined && { display: shownLines(display, display.length * 3) }),
        }),
      );
    }
  }

  /** Adds output; rejects with what the capture reports, after keeping what fits. */
  async write(stream: string | null, data: string | readonly Uint8Array[]): Promise<void> {
    await this.#capture?.write(stream, data);
  }

  /** Publishes what was captured; undefined for a tool without capture. */
  async finish(end: { incomplete: boolean }): Promise<CapturedOutput | undefined> {
    try {
      return await this.#capture?.finish(end);
    } finally {
      this.#feed.end();
    }
  }

  discard(): void {
    this.#feed.end();
    this.#capture?.discard();
  }
}
