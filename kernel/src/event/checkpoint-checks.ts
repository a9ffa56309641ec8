import type { EventPayload } from "@cookie-agent/sdk/protocol";
import { requireRule } from "./require-rule.ts";
import type { UndoJournal } from "./undo-journal.ts";

/** The order of checkpoints: each points back at what it stands for, and files come back at most once behind each. */
export class CheckpointChecks {
  readonly #journal: UndoJournal;
  readonly #seqs = new Set<number>();
  readonly #last = { mayRehydrate: false };

  constructor(journal: UndoJournal) {
    this.#journal = journal;
  }

  /** @param isQuiet No attempt of a model is under way, and no run is active that the event does not belong to. */
  check(payload: EventPayload, seq: number, isQuiet: boolean): void {
    if (payload.type === "context_rehydrated") {
      requireRule(this.#last.mayRehydrate, payload, "no checkpoint waits for it");
      return;
    }
    if (payload.type !== "context_checkpoint_committed") return;
    const { boundaries, budgets, checkpoint } = payload;
    const { source_from_seq: from, source_through_seq: through } = boundaries;
    const { prior_checkpoint_seq: prior, recent_from_seq: recent } = boundaries;
    requireRule(isQuiet, payload, "a model is being asked");
    requireRule(
      from <= through && through < seq,
      payload,
      "it stands for events that are not there",
    );
    requireRule(prior === null || this.#seqs.has(prior), payload, "the one before it is unknown");
    requireRule(
      recent === undefined || (from <= recent && recent <= through),
      payload,
      "what it keeps lies outside of what it stands for",
    );
    requireRule(
      budgets.input_tokens_after < budgets.input_tokens_before,
      payload,
      "it makes nothing smaller",
    );
    requireRule(
      checkpoint.type !== "internal_summary" || checkpoint.byte_length <= budgets.max_summary_bytes,
      payload,
      "its summary is too long",
    );
  }

  advance(payload: EventPayload, seq: number): void {
    if (payload.type === "context_rehydrated") {
      this.#journal.assign(this.#last, { mayRehydrate: false });
    }
    if (payload.type !== "context_checkpoint_committed") return;
    this.#journal.add(this.#seqs, seq);
    const mayRehydrate = payload.checkpoint.type === "internal_summary";
    this.#journal.assign(this.#last, { mayRehydrate });
  }
}
