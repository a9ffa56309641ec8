import type { EventPayload } from "@cookie-agent/sdk/protocol";
import { printable } from "../printable.ts";

/** The status line is redrawn at most this often. */
const REDRAW_MS = 100;
/** The end of the streamed text that a line can show. */
const KEPT_CHARS = 1024;

/** A progress line where a person looks; none in a pipe, on a dumb terminal or beside `--verbose`. */
export function openProgressLine(out: NodeJS.WriteStream, verbose: boolean): ProgressLine | null {
  const wanted = out.isTTY === true && !verbose && process.env["TERM"] !== "dumb";
  return wanted ? new ProgressLine(out) : null;
}

/**
 * One line at the bottom of a terminal that says what is running, for how long, and the end of the text that is
 * being streamed. It is erased when the run ends, and anything else that is printed goes above it.
 */
export class ProgressLine {
  readonly #out: NodeJS.WriteStream;
  readonly #startedAt = performance.now();
  readonly #running = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;
  #streamed = "";
  #drawn = false;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    this.#timer = setInterval(() => this.#draw(), REDRAW_MS);
    this.#timer.unref();
  }

  onPayload(payload: EventPayload): void {
    switch (payload.type) {
      case "text_delta":
        this.#streamed = (this.#streamed + payload.text).slice(-KEPT_CHARS);
        break;
      case "tool_call_started": {
        const { title, primary_argument: argument } = payload.presentation;
        this.#running.set(payload.tool_call_id, argument === null ? title : `${title} ${argument}`);
        this.#streamed = "";
        break;
      }
      case "internal_agent_started":
        if (payload.kind !== "context_compaction") break;
        this.#running.set(payload.internal_run_id, "summarizing the conversation");
        break;
      case "internal_agent_completed":
      case "internal_agent_failed":
      case "internal_agent_cancelled":
        this.#running.delete(payload.internal_run_id);
        break;
      case "tool_call_terminated":
        this.#running.delete(payload.tool_call_id);
        break;
      default:
        break;
    }
  }

  /** Prints a line of its own above the status. */
  note(text: string): void {
    this.erase();
    this.#out.write(`${text}\n`);
  }

  /** Makes room for something else on the same terminal; the next redraw brings the line back. */
  erase(): void {
    if (this.#drawn) this.#out.write("\r\u001B[K");
    this.#drawn = false;
  }

  end(): void {
    clearInterval(this.#timer);
    this.erase();
  }

  #draw(): void {
    const elapsed = `${Math.floor((performance.now() - this.#startedAt) / 1000)} s`;
    const width = Math.max((this.#out.columns || 80) - 1, 20);
    const line = [...printable(`${elapsed} · ${this.#activity()}`)].slice(0, width).join("");
    // no wrapping while it is drawn: a wide character must not push the line onto a second row
    this.#out.write(`\r\u001B[K\u001B[?7l${line}\u001B[?7h`);
    this.#drawn = true;
  }

  #activity(): string {
    const calls = [...this.#running.values()];
    if (calls.length > 1) return `${calls.length} calls: ${calls.join(", ")}`;
    const streaming = this.#streamed.trimEnd().split("\n").at(-1) ?? "";
    return calls[0] ?? (streaming === "" ? "waiting for the model" : streaming);
  }
}
