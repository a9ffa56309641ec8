import type {
  EventPayload,
  ModelErrorKind,
  ModelErrorSummary,
  ToolAttachment,
} from "@cookie-agent/sdk/protocol";

/** What can be said of a request for what it contains; asked again unchanged, the answer would be the same. */
const REFUSALS: ReadonlySet<ModelErrorKind> = new Set([
  "invalid_request",
  "content_filter",
  "unsupported",
]);
const TOO_LARGE = 413;

/** Whether a provider may have failed a request for the media in it. */
export function mayRefuseMedia({ kind, http_status: status }: ModelErrorSummary): boolean {
  return REFUSALS.has(kind) || status === TOO_LARGE;
}

/**
 * What each model made of the media of a history. A provider does not say which part it could not read, so all that
 * came since its last answer is left out from then on; otherwise one broken image would fail every later request.
 */
export class JudgedMedia {
  readonly #parts: ToolAttachment[] = [];
  /** How many of the parts were there when the model last answered. */
  readonly #accepted = new Map<string, number>();
  readonly #refused = new Map<string, Set<ToolAttachment>>();
  #asked: string | null = null;

  add(parts: readonly ToolAttachment[]): void {
    this.#parts.push(...parts);
  }

  apply(payload: EventPayload): void {
    if (payload.type === "model_attempt_started") this.#asked = payload.resolved_model.model;
    if (payload.type === "model_turn_committed") {
      this.#accepted.set(payload.resolved_model.model, this.#parts.length);
    }
    if (payload.type !== "attempt_abandoned" || payload.media_refused !== true) return;
    if (this.#asked === null) return;
    this.#refused.set(
      this.#asked,
      new Set([...this.refusedBy(this.#asked), ...this.untriedBy(this.#asked)]),
    );
  }

  /** Parts that no request answered by the model has contained. */
  untriedBy(model: string): readonly ToolAttachment[] {
    return this.#parts.slice(this.#accepted.get(model) ?? 0);
  }

  refusedBy(model: string): ReadonlySet<ToolAttachment> {
    return this.#refused.get(model) ?? NONE;
  }
}

const NONE: ReadonlySet<ToolAttachment> = new Set();
