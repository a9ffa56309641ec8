import type { EventPayload } from "@cookie-agent/sdk/protocol";

/** The status line is redrawn at most this often. */
const REDRAW_MS = 100;

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
        this.#streamed = (this.#streamed + payload.text).slice(-1024);
        break;
      case "tool_call_started": {
        const { title, primary_argument: argument } = payload.presentation;
        this.#running.set(payload.tool_call_id, argument === null ? title : `${title} ${argument}`);
        this.#streamed = "";
        break;
      }
      case "tool_call_terminated":
        this.#running.delete(payload.tool_call_id);
        break;
      default:
        break;
    }
  }

  /** Prints a line of its own above the status. */
  note(text: string): void {
    this.#erase();
    this.#out.write(`${text}\n`);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#erase();
  }

  #draw(): void {
    const elapsed = `${Math.floor((performance.now() - this.#startedAt) / 1000)} s`;
    const calls = [...this.#running.values()];
    const what =
      calls.length === 0
        ? (this.#streamed.trimEnd().split("\n").at(-1) ?? "")
        : calls.length === 1
          ? (calls[0] ?? "")
          : `${calls.length} calls: ${calls.join(", ")}`;
    const width = Math.max((this.#out.columns ?? 80) - 1, 20);
    const line = `${elapsed} · ${what === "" ? "waiting for the model" : what}`;
    this.#out.write(`\r\u001B[K${printable(line).slice(0, width)}`);
    this.#drawn = true;
  }

  #erase(): void {
    if (this.#drawn) this.#out.write("\r\u001B[K");
    this.#drawn = false;
  }
}

/** Model text and tool arguments are hostile: no control character reaches the terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, " ");
}
