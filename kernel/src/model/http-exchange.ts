import type { ModelErrorKind } from "@cookie-agent/sdk/protocol";
import { BodyReader } from "./body-reader.ts";
import { EventBound } from "./event-bound.ts";
import { DeltaMerger } from "./merge-deltas.ts";
import type { ModelError } from "./model-error.ts";
import { modelError } from "./model-error.ts";
import type { BodyPieces } from "./request-prefix.ts";
import { type HttpAnswer, sendRequest } from "./send-request.ts";

export interface ExchangeTimeouts {
  /** From the request to the response headers; connecting has 10 s within it. */
  readonly headersMs: number;
  /** The longest silence of a response body. */
  readonly idleMs: number;
}

export const DEFAULT_TIMEOUTS: ExchangeTimeouts = { headersMs: 30_000, idleMs: 60_000 };

export interface ExchangeOptions {
  readonly timeouts: ExchangeTimeouts;
  readonly signal: AbortSignal;
  /** Last word on the request headers, named in lower case: puts in or takes out credentials. */
  authorize(headers: Map<string, string>): void;
  /** Told of the head of the answer before its body is read. */
  onResponse?(status: number, headers: ReadonlyMap<string, string>): Promise<void> | undefined;
  /** Replaces the address that the provider package builds. */
  readonly url?: string;
  /** Completes the body that the provider package wrote. */
  complete?(body: string): BodyPieces;
}

/** What a provider package reads of a response. */
type PackageResponse = Pick<Response, "ok" | "status" | "statusText" | "body"> & {
  readonly headers: ReadonlyMap<string, string>;
};

const MAX_PLAIN_BODY_BYTES = 256 * 1024;

/**
 * One HTTP request and what became of it: timeouts, credentials and the facts an error report needs. The
 * provider package gets `fetch`; `close` ends whatever is still running.
 */
export class HttpExchange {
  readonly #options: ExchangeOptions;
  readonly #controller = new AbortController();
  readonly #onAbort = () => this.#controller.abort(this.#options.signal.reason);
  #status: number | null = null;
  #headers: ReadonlyMap<string, string> | null = null;
  #bytesReceived = 0;
  #failure: ModelError | null = null;
  #readToEnd = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    if (options.signal.aborted) this.#onAbort();
    else options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get status(): number | null {
    return this.#status;
  }

  get bytesReceived(): number {
    return this.#bytesReceived;
  }

  /** Set when this side ended the exchange; it says more than what the broken stream reports. */
  get failure(): ModelError | null {
    return this.#failure;
  }

  responseHeader(name: string): string | null {
    return this.#headers?.get(name) ?? null;
  }

  readonly fetch = async (
    input: Parameters<typeof fetch>[0],
    init?: RequestInit,
  ): Promise<Response> => {
    const headers = new Map<string, string>(Object.entries({ ...init?.headers }));
    this.#options.authorize(headers);
    const { headersMs } = this.#options.timeouts;
    const timer = setTimeout(
      () => this.#fail("timeout", "response_headers", `no response headers within ${headersMs} ms`),
      headersMs,
    );
    try {
      // A redirect is not followed: it would carry a key header to wherever the answer points.
      const answer = await sendRequest(this.#options.url ?? String(input), {
        method: init?.method ?? "GET",
        headers,
        body: this.#bodyOf(String(init?.body ?? "")),
        signal: this.#controller.signal,
      });
      this.#status = answer.status;
      this.#headers = answer.headers;
      const response = this.#watch(answer);
      if (this.#options.onResponse === undefined) return response;
      // The provider has answered in time; what others make of it is theirs.
      clearTimeout(timer);
      await this.#options.onResponse(answer.status, answer.headers);
      return response;
    } finally {
      clearTimeout(timer);
    }
  };

  /** Ends the connection unless the response was read to its end. */
  close(): void {
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    if (!this.#readToEnd) this.#controller.abort();
  }

  #bodyOf(written: string): BodyPieces {
    return this.#options.complete?.(written) ?? [written];
  }

  #watch({ status, statusText, headers, body: source }: HttpAnswer): Response {
    const reader = new BodyReader(source);
    const merger = new DeltaMerger();
    const bound = new EventBound();
    const { idleMs } = this.#options.timeouts;
    const ok = status >= 200 && status < 300;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          // The package gathers the whole text of an error before it reads a word of it.
          if (!ok && this.#bytesReceived >= MAX_PLAIN_BODY_BYTES) return controller.close();
          const timer = setTimeout(
            () => this.#fail("timeout", "stream_read", `the response was silent for ${idleMs} ms`),
            idleMs,
          );
          try {
            const bytes = await reader.take();
            if (bytes === undefined) {
              this.#readToEnd = true;
              return controller.close();
            }
            this.#bytesReceived += bytes.byteLength;
            if (bound.isExceededBy(bytes)) {
              const message = "an event of the response is larger than 8 MiB";
              throw this.#fail("invalid_response", "stream_read", message);
            }
            controller.enqueue(merger.merge(bytes));
          } finally {
            clearTimeout(timer);
          }
        },
        cancel: () => reader.cancel(),
      },
      { highWaterMark: 0 },
    );
    const response: PackageResponse = { ok, status, statusText, headers, body };
    return response as unknown as Response;
  }

  #fail(kind: ModelErrorKind, stage: string, message: string): ModelError {
    this.#failure ??= modelError({ kind, stage, message });
    this.#controller.abort(this.#failure);
    return this.#failure;
  }
}

/** The beginning of a body that should have been an event stream. */
export async function readPlainBody(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  if (response.body === null) return text;
  const body: AsyncIterable<Uint8Array> = response.body;
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= MAX_PLAIN_BODY_BYTES) break;
  }
  return text;
}
