type DeltaKind = "text_delta" | "reasoning_delta";

/** Joins the deltas that come in one turn of the event loop, so that each burst is one stream event. */
export class DeltaGatherer {
  readonly #emit: (kind: DeltaKind, text: string) => void;
  #kind: DeltaKind = "text_delta";
  #text = "";
  #due: NodeJS.Immediate | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(emit: (kind: DeltaKind, text: string) => void) {
    this.#emit = emit;
  }

  add(kind: DeltaKind, text: string): void {
    if (kind !== this.#kind) this.flush();
    this.#kind = kind;
    this.#text += text;
    this.#due ??= setImmediate(() => this.#flushLater());
  }

  /** To be called before anything else is recorded, and at the end; throws what an earlier burst met. */
  flush(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    clearImmediate(this.#due);
    this.#due = undefined;
    const text = this.#text;
    this.#text = "";
    if (text !== "") this.#emit(this.#kind, text);
  }

  #flushLater(): void {
    try {
      this.flush();
    } catch (error) {
      this.#failure = { error };
    }
  }
}
