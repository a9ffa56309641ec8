/** Where nothing is known of a model's tokens. */
const BYTES_PER_TOKEN = 4;

/** Whoever reports more bytes for each token counts something else than the request. */
const MAX_BYTES_PER_TOKEN = 32;

interface Measured {
  readonly inputTokens: number;
  readonly byteLength: number;
}

/**
 * How many tokens the next request of a session will have, from what the provider reported of the last one (S 10.3). It
 * lives in memory only: whoever forgets the session's course forgets it too.
 */
export class ContextEstimator {
  #last: Measured | null = null;
  #tokensPerByte = 1 / BYTES_PER_TOKEN;

  /** A request of this size was answered; `inputTokens` as reported, null when it was not. */
  measured(byteLength: number, inputTokens: number | null): void {
    if (inputTokens === null || byteLength === 0) return;
    if (inputTokens * MAX_BYTES_PER_TOKEN < byteLength) return;
    this.#last = { inputTokens, byteLength };
    this.#tokensPerByte = inputTokens / byteLength;
  }

  /** The request became this small without having been sent; it counts as the last one from here on. */
  compacted(byteLength: number): void {
    this.#last = { inputTokens: this.tokensOf(byteLength), byteLength };
  }

  /** Tokens of a request of this size. */
  project(byteLength: number): number {
    if (this.#last === null) return this.tokensOf(byteLength);
    const newTokens = (byteLength - this.#last.byteLength) * this.#tokensPerByte;
    const tokens = this.#last.inputTokens + Math.ceil(newTokens);
    return Math.min(Math.max(0, tokens), Number.MAX_SAFE_INTEGER);
  }

  /** Tokens of some bytes of a request. */
  tokensOf(byteLength: number): number {
    return Math.min(Math.ceil(byteLength * this.#tokensPerByte), Number.MAX_SAFE_INTEGER);
  }

  /** Bytes that at most have that many tokens. */
  bytesOf(tokens: number): number {
    return Math.floor(tokens / this.#tokensPerByte);
  }
}
