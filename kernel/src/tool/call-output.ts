import type { RunId, ToolCallId, ToolProgress } from "@cookie-agent/sdk/protocol";
import { type CapturedOutput, OutputCapture } from "../artifact/capture-output.ts";
import { cutUtf8, shown, shownLines } from "../support/safe-text.ts";
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
    this.#capture =
      truncation === "opt_out"
        ? undefined
        : new OutputCapture({
            store: stages.artifacts,
            rootId: turn.rootSessionId,
            output,
            limits: stages.limits,
          });
    this.#feed = stages.outputs.begin({
      sessionId: turn.sessionId,
      toolCallId: call.toolCallId,
      streams: output.mode === "named" ? output.streams : [],
    });
  }

  /** Whether output came as deltas. */
  get streamed(): boolean {
    return this.#streamed;
  }

  get acceptedBytes(): number {
    return this.#capture?.acceptedBytes ?? 0;
  }

  /** Takes one checked delta and resolves with the bytes captured so far; rejects with what the capture reports. */
  async accept({ output = [], message, display }: ToolProgress): Promise<number> {
    for (const { stream, text } of output) {
      this.#streamed = true;
      await this.write(stream ?? null, text);
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
    return this.acceptedBytes;
  }

  /** Adds text; rejects with what the capture reports, after keeping what fits. */
  async write(stream: string | null, text: string): Promise<void> {
    const before = this.acceptedBytes;
    try {
      await this.#capture?.write(stream, text);
    } catch (error) {
      // Who watches sees what was kept, also when the cap cut it.
      this.#feed.write(stream, cutUtf8(text, this.acceptedBytes - before));
      throw error;
    }
    this.#feed.write(stream, text);
  }

  /** Publishes what was captured; undefined for a tool without capture. */
  async finish(end: { incomplete: boolean }): Promise<CapturedOutput | undefined> {
    this.#feed.end();
    return this.#capture?.finish(end);
  }

  discard(): void {
    this.#feed.end();
    this.#capture?.discard();
  }
}
