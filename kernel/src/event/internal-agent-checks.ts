import type {
  EventPayload,
  InternalAgentInvocationId,
  InternalAgentKind,
  InternalAgentRunId,
  RunId,
} from "@cookie-agent/sdk/protocol";
import { requireRule } from "./require-rule.ts";
import type { UndoJournal } from "./undo-journal.ts";

export const INTERNAL_AGENT_EVENTS = [
  "internal_agent_started",
  "internal_agent_usage_recorded",
  "internal_agent_fallback",
  "internal_agent_completed",
  "internal_agent_failed",
  "internal_agent_cancelled",
  "internal_agent_interrupted",
] as const satisfies readonly EventPayload["type"][];

type InternalAgentEvent = Extract<EventPayload, { type: (typeof INTERNAL_AGENT_EVENTS)[number] }>;

interface OpenInternalAgent {
  readonly invocationId: InternalAgentInvocationId;
  readonly runId: RunId | null;
  readonly kind: InternalAgentKind;
  /** The model that is being asked has its usage on record. */
  readonly isUsageRecorded: boolean;
}

/** The order of an internal agent's events: started once, one usage for each model that answers, ended once (S 2.4). */
export class InternalAgentChecks {
  readonly #journal: UndoJournal;
  readonly #open = new Map<InternalAgentRunId, OpenInternalAgent>();

  constructor(journal: UndoJournal) {
    this.#journal = journal;
  }

  check(payload: EventPayload, runId: RunId | null): void {
    if (!isInternalAgentEvent(payload)) return;
    const open = this.#open.get(payload.internal_run_id);
    if (payload.type === "internal_agent_started") {
      requireRule(open === undefined, payload, "the internal agent is already open");
      return;
    }
    requireRule(open?.runId === runId, payload, "no such internal agent is open in its run");
    if (payload.type === "internal_agent_usage_recorded") {
      requireRule(payload.kind === open.kind, payload, "the internal agent is of another kind");
      requireRule(!open.isUsageRecorded, payload, "the usage of this model is already recorded");
      return;
    }
    const isSame = payload.invocation_id === open.invocationId;
    requireRule(isSame, payload, "the internal agent belongs to another invocation");
  }

  advance(payload: EventPayload, runId: RunId | null): void {
    if (!isInternalAgentEvent(payload)) return;
    const { internal_run_id: internalRunId } = payload;
    if (payload.type === "internal_agent_started") {
      const { invocation_id: invocationId, kind } = payload;
      const started = { invocationId, runId, kind, isUsageRecorded: false };
      this.#journal.set(this.#open, internalRunId, started);
      return;
    }
    const open = this.#open.get(internalRunId);
    if (open === undefined) return;
    if (payload.type === "internal_agent_usage_recorded") {
      this.#journal.set(this.#open, internalRunId, { ...open, isUsageRecorded: true });
    } else if (payload.type === "internal_agent_fallback") {
      this.#journal.set(this.#open, internalRunId, { ...open, isUsageRecorded: false });
    } else {
      this.#journal.remove(this.#open, internalRunId);
    }
  }
}

const TYPES: ReadonlySet<string> = new Set(INTERNAL_AGENT_EVENTS);

function isInternalAgentEvent(payload: EventPayload): payload is InternalAgentEvent {
  return TYPES.has(payload.type);
}
