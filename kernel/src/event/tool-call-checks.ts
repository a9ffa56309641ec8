import type { EventPayload, EventPayloadOf, RunId } from "@cookie-agent/sdk/protocol";
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
  /** Ids taken in the current run, of every kind. */
  readonly #taken = new Set<string>();

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
        requireRule(!this.#taken.has(startedKey(payload)), payload, "the call has already started");
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
        for (const id of [...this.#taken]) this.#journal.discard(this.#taken, id);
        for (const place of [...this.#requested.keys()])
          this.#journal.remove(this.#requested, place);
        return;
      case "model_turn_committed":
        this.#request(payload, runId);
        return;
      case "tool_call_started":
        this.#journal.remove(this.#requested, placeOf(payload.owner));
        this.#journal.add(this.#taken, startedKey(payload));
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
    const fresh = new Set<string>();
    for (const key of idsOf(payload)) {
      requireRule(
        !fresh.has(key) && !this.#taken.has(key),
        payload,
        "a model call id is used twice",
      );
      fresh.add(key);
    }
  }

  #request(payload: EventPayloadOf<"model_turn_committed">, runId: RunId): void {
    for (const key of idsOf(payload)) this.#journal.add(this.#taken, key);
    for (const [index, part] of payload.turn.content.entries()) {
      if (part.type !== "tool_call") continue;
      this.#journal.set(this.#requested, `${payload.model_turn_seq}:${index}`, {
        runId,
        modelCallId: part.id,
        providerItemId: part.provider_item_id,
      });
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

function startedKey(payload: EventPayloadOf<"tool_call_started">): string {
  return `started:${payload.tool_call_id}`;
}

function idsOf(payload: EventPayloadOf<"model_turn_committed">): string[] {
  const ids: string[] = [];
  for (const part of payload.turn.content) {
    if (part.type !== "tool_call") continue;
    ids.push(`call:${part.id}`);
    if (part.provider_item_id !== null) ids.push(`item:${part.provider_item_id}`);
  }
  return ids;
}
