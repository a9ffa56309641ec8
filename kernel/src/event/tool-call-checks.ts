import type { EventPayload, EventPayloadOf, RunId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { requireRule } from "./require-rule.ts";
import type { UndoJournal } from "./undo-journal.ts";

type Owner = EventPayloadOf<"tool_call_started">["owner"];

interface RequestedCall {
  readonly runId: RunId;
  readonly modelCallId: string;
  readonly providerItemId: string | null;
}

interface PendingCall {
  readonly runId: RunId;
  readonly owner: Owner;
}

/** The order of tool-call events: requested by a committed turn, started once, terminated once (S-042). */
export class ToolCallChecks {
  readonly #journal: UndoJournal;
  /** Calls of the committed turns that have not started, by turn and content index. */
  readonly #requested = new Map<string, RequestedCall>();
  readonly #pending = new Map<string, PendingCall>();
  /** Taken in the current run. */
  readonly #callIds = new Set<string>();
  readonly #itemIds = new Set<string>();
  readonly #started = new Set<ToolCallId>();

  constructor(journal: UndoJournal) {
    this.#journal = journal;
  }

  check(payload: EventPayload, runId: RunId): void {
    switch (payload.type) {
      case "model_turn_committed":
        this.#checkFreshIds(payload);
        return;
      case "tool_call_started": {
        const { owner } = payload;
        const requested = this.#requested.get(placeOf(owner));
        requireRule(
          requested?.runId === runId &&
            requested.modelCallId === owner.model_call_id &&
            requested.providerItemId === owner.provider_item_id,
          payload,
          "no committed turn of the run asks for it",
        );
        requireRule(
          !this.#started.has(payload.tool_call_id),
          payload,
          "the call has already started",
        );
        return;
      }
      case "tool_call_progress":
      case "tool_stdin_submitted":
        requireRule(
          this.#isPending(payload.tool_call_id, runId),
          payload,
          "the call is not running",
        );
        return;
      case "tool_call_terminated":
        requireRule(
          this.#isPending(payload.tool_call_id, runId),
          payload,
          "the call is not running",
        );
        requireRule(this.#isOwner(payload), payload, "the call has another owner");
        requireRule(
          payload.outcome === "completed"
            ? payload.result !== null && payload.error === null
            : payload.error !== null,
          payload,
          "a completed call has a result and no error, any other an error",
        );
        return;
      default:
        return;
    }
  }

  advance(payload: EventPayload, runId: RunId): void {
    switch (payload.type) {
      case "run_started":
        for (const taken of [this.#callIds, this.#itemIds, this.#started]) {
          for (const id of [...taken]) this.#journal.discard<string>(taken, id);
        }
        for (const place of [...this.#requested.keys()])
          this.#journal.remove(this.#requested, place);
        return;
      case "model_turn_committed":
        this.#request(payload, runId);
        return;
      case "tool_call_started":
        this.#journal.remove(this.#requested, placeOf(payload.owner));
        this.#journal.add(this.#started, payload.tool_call_id);
        this.#journal.set(this.#pending, payload.tool_call_id, { runId, owner: payload.owner });
        return;
      case "tool_call_terminated":
        this.#journal.remove(this.#pending, payload.tool_call_id);
        return;
      default:
        return;
    }
  }

  #checkFreshIds(payload: EventPayloadOf<"model_turn_committed">): void {
    const calls = payload.turn.content.filter((part) => part.type === "tool_call");
    const callIds = calls.map(({ id }) => id);
    const itemIds = calls.flatMap(({ provider_item_id: id }) => (id === null ? [] : [id]));
    const isFresh = areNew(callIds, this.#callIds) && areNew(itemIds, this.#itemIds);
    requireRule(isFresh, payload, "a model call id is used twice");
  }

  #request(payload: EventPayloadOf<"model_turn_committed">, runId: RunId): void {
    for (const [index, part] of payload.turn.content.entries()) {
      if (part.type !== "tool_call") continue;
      const { id: modelCallId, provider_item_id: providerItemId } = part;
      this.#journal.add(this.#callIds, modelCallId);
      if (providerItemId !== null) this.#journal.add(this.#itemIds, providerItemId);
      const place = `${payload.model_turn_seq}:${index}`;
      this.#journal.set(this.#requested, place, { runId, modelCallId, providerItemId });
    }
  }

  #isPending(toolCallId: string, runId: RunId): boolean {
    return this.#pending.get(toolCallId)?.runId === runId;
  }

  #isOwner({ tool_call_id, owner }: EventPayloadOf<"tool_call_terminated">): boolean {
    const started = this.#pending.get(tool_call_id)?.owner;
    return (
      started?.model_turn_seq === owner.model_turn_seq &&
      started.content_index === owner.content_index &&
      started.model_call_id === owner.model_call_id &&
      started.provider_item_id === owner.provider_item_id
    );
  }
}

function placeOf(owner: Owner): string {
  return `${owner.model_turn_seq}:${owner.content_index}`;
}

function areNew(ids: readonly string[], taken: ReadonlySet<string>): boolean {
  return new Set(ids).size === ids.length && !ids.some((id) => taken.has(id));
}
