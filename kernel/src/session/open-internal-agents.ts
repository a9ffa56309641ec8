import type { EventPayload, EventPayloadOf, RunId, StoredEvent } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";

type Started = EventPayloadOf<"internal_agent_started">;

/** The internal agents that were asked and have not ended, as the log knows them. */
export class OpenInternalAgents {
  readonly #open = new Map<
    Started["internal_run_id"],
    Pick<Started, "invocation_id"> & { runId: RunId | null }
  >();

  apply({ payload, run_id: runId }: StoredEvent): void {
    switch (payload.type) {
      case "internal_agent_started":
        this.#open.set(payload.internal_run_id, { invocation_id: payload.invocation_id, runId });
        break;
      case "internal_agent_completed":
      case "internal_agent_failed":
      case "internal_agent_cancelled":
      case "internal_agent_interrupted":
        this.#open.delete(payload.internal_run_id);
        break;
      default:
        break;
    }
  }

  /** What ends them all after their process is gone (S 3.8). */
  interrupted(reason: string): EventDraft[] {
    return [...this.#open].map(([internalRunId, { invocation_id, runId }]) => {
      const payload: EventPayload = {
        type: "internal_agent_interrupted",
        invocation_id,
        internal_run_id: internalRunId,
        reason,
      };
      return { payload, runId };
    });
  }
}
