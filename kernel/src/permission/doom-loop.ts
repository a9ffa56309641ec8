import type { ApprovalId, Digest, StoredEvent, ToolCallId } from "@cookie-agent/sdk/protocol";

/** From this many identical approval requests on, the answer is no in every mode (S-176). */
export const DOOM_LOOP_REPETITIONS = 4;

/**
 * Counts how often the current run has asked for one and the same operation (S 6.12). Reading the log again leads to
 * the same counts: a request that was counted when it was made is not counted again when its event comes.
 */
export class DoomLoopCounter {
  readonly #requests = new Map<Digest, number>();
  readonly #running = new Map<ToolCallId, Digest>();
  /** Requests that were counted and whose events are still to come. */
  readonly #announced = new Set<ApprovalId>();

  /** Counts a request and yields how many there were for its operation since the last reset. */
  request(approvalId: ApprovalId, fingerprint: Digest): number {
    this.#announced.add(approvalId);
    return this.#count(fingerprint);
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
        const { approval_id: approvalId, operation_fingerprint: fingerprint } = payload.request;
        if (!this.#announced.delete(approvalId)) this.#count(fingerprint);
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

  #count(fingerprint: Digest): number {
    const requests = (this.#requests.get(fingerprint) ?? 0) + 1;
    this.#requests.set(fingerprint, requests);
    return requests;
  }

  #keepOnly(fingerprint: Digest): void {
    for (const other of this.#requests.keys()) {
      if (other !== fingerprint) this.#requests.delete(other);
    }
  }
}
