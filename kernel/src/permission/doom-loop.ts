import type { Digest, StoredEvent, ToolCallId } from "@cookie-agent/sdk/protocol";

/** From this many identical approval requests on, the answer is no in every mode (S-176). */
export const DOOM_LOOP_REPETITIONS = 4;

/**
 * Counts how often the current run has asked for one and the same operation (S 6.12). It knows nothing but the
 * events that it is fed, so it stands the same after the log is read again.
 */
export class DoomLoopCounter {
  readonly #requests = new Map<Digest, number>();
  readonly #running = new Map<ToolCallId, Digest>();

  /** Requests for the operation since the last reset. */
  repetitions(fingerprint: Digest): number {
    return this.#requests.get(fingerprint) ?? 0;
  }

  apply({ payload }: StoredEvent): void {
    switch (payload.type) {
      case "run_started":
        this.#running.clear();
        this.#requests.clear();
        break;
      case "user_input_submitted":
      case "user_input_applied":
        this.#requests.clear();
        break;
      case "approval_requested": {
        const fingerprint = payload.request.operation_fingerprint;
        this.#requests.set(fingerprint, this.repetitions(fingerprint) + 1);
        break;
      }
      case "tool_call_started":
        this.#running.set(payload.tool_call_id, payload.operation_fingerprint);
        break;
      case "tool_call_terminated": {
        const fingerprint = this.#running.get(payload.tool_call_id);
        this.#running.delete(payload.tool_call_id);
        if (payload.outcome === "completed" && fingerprint !== undefined)
          this.#keepOnly(fingerprint);
        break;
      }
      default:
        break;
    }
  }

  #keepOnly(fingerprint: Digest): void {
    for (const other of this.#requests.keys()) {
      if (other !== fingerprint) this.#requests.delete(other);
    }
  }
}
