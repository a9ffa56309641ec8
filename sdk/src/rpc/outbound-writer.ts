import { Event, type Message, Message as Messages, type MessageWriter } from "vscode-jsonrpc";

/**
 * The library turns a failed write into an error of its own and loses ours; this writer keeps it for the request that
 * caused it. Requests are written synchronously, so the last one seen is the one just sent.
 */
export class OutboundWriter implements MessageWriter {
  readonly onError: MessageWriter["onError"];
  readonly onClose: MessageWriter["onClose"];
  readonly #writer: MessageWriter;
  #lastRequest: Promise<void> | undefined;

  constructor(writer: MessageWriter) {
    this.#writer = writer;
    this.onError = writer.onError;
    // The end of writing alone must not end the connection at once; its owner listens to the transport itself.
    this.onClose = Event.None as Event<void>;
  }

  write(message: Message): Promise<void> {
    const written = this.#writer.write(message);
    if (Messages.isRequest(message)) this.#lastRequest = written;
    return written;
  }

  end(): void {
    this.#writer.end();
  }

  dispose(): void {
    this.#writer.dispose();
  }

  failureOfLastRequest(): () => unknown {
    let failure: unknown;
    this.#lastRequest?.catch((error: unknown) => {
      failure = error;
    });
    return () => failure;
  }
}
