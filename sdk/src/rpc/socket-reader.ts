import { AbstractMessageReader, type DataCallback, type Disposable } from "vscode-jsonrpc";
import type { WebSocket } from "ws";
import type { Envelope } from "./client-envelope.ts";
import { FrameValve, skipsDispatchQueue } from "./frame-valve.ts";

export interface SocketReaderOptions {
  readonly socket: WebSocket;
  read(text: string): Envelope;
  onBadEnvelope(bad: Extract<Envelope, { bad: unknown }>["bad"]): void;
}

/**
 * Reads one message per text frame and ignores binary ones (D-010). Reading pauses while too much waits, here or, by
 * `hold`, elsewhere. The close event comes after the last message was dispatched.
 */
export class SocketReader extends AbstractMessageReader {
  readonly flow: FrameValve;
  readonly #options: SocketReaderOptions;
  readonly #holders = new Set<string>();
  #callback: DataCallback | undefined;
  #ended = false;
  #closeFired = false;

  constructor(options: SocketReaderOptions) {
    super();
    this.#options = options;
    this.flow = new FrameValve({
      pause: () => this.hold("flow", true),
      resume: () => this.hold("flow", false),
      onDrained: () => this.#closeWhenDone(),
    });
    options.socket.on("close", () => {
      this.#ended = true;
      this.#closeWhenDone();
    });
    options.socket.on("error", (error) => this.fireError(error));
  }

  listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    this.#options.socket.on("message", this.#onMessage);
    return { dispose: () => this.#stop() };
  }

  hold(holder: "flow" | "answers", held: boolean): void {
    const { socket } = this.#options;
    if (held) this.#holders.add(holder);
    else this.#holders.delete(holder);
    if (this.#holders.size > 0) socket.pause();
    else socket.resume();
  }

  override dispose(): void {
    this.#stop();
    super.dispose();
  }

  readonly #onMessage = (data: Buffer, isBinary: boolean): void => {
    if (isBinary) return;
    const byteLength = data.length;
    const envelope = this.#options.read(data.toString("utf8"));
    // It may have held what somebody typed into a command (D-088).
    data.fill(0);
    if ("bad" in envelope) {
      this.#options.onBadEnvelope(envelope.bad);
      return;
    }
    const { frame } = envelope;
    if (!skipsDispatchQueue(frame)) this.flow.admit(frame, byteLength);
    this.#callback?.(frame);
  };

  #closeWhenDone(): void {
    if (!this.#ended || this.#closeFired || !this.flow.drained) return;
    this.#closeFired = true;
    this.fireClose();
  }

  /** The socket is left flowing, so that the other side's goodbye is heard. */
  #stop(): void {
    this.#callback = undefined;
    this.#options.socket.off("message", this.#onMessage);
    this.flow.reset();
    this.#holders.clear();
    this.#options.socket.resume();
  }
}
