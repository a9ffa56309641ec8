import { inspect } from "node:util";

const REDACTED = "[redacted]";

/** Text that no diagnostic prints: only `reveal` gives it out (C-036). */
export class Secret {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  static of(text: string): Secret {
    return new Secret(text);
  }

  /** The text itself, for the one place that sends it. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
