import {
  EVENT_PAYLOADS,
  type EventPayload,
  type PermissionMode,
  type RunId,
  type SessionId,
  type StoredEvent,
  type ToolCallId,
} from "@cookie-agent/sdk/protocol";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import {
  ApprovalGate,
  type GatePorts,
  type GateRequest,
} from "../../../../kernel/src/permission/approval-gate.ts";
import type { GateOutcome } from "../../../../kernel/src/permission/gate-outcome.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

export const RUN = createId<RunId>();
const SESSION = createId<SessionId>();

/** A session as the gate sees it: an append-only list whose events are checked against their schemas. */
export class GateSession implements GatePorts {
  readonly events: StoredEvent[] = [];
  readonly gate: ApprovalGate;
  readonly headless: boolean;
  readonly approvalTimeoutMs: number;
  currentMode: PermissionMode;
  interactive: boolean;
  failure: Error | undefined;

  constructor(options: {
    mode?: PermissionMode;
    headless?: boolean;
    attended?: boolean;
    approvalTimeoutMs?: number;
  }) {
    this.currentMode = options.mode ?? "ask";
    this.headless = options.headless ?? false;
    this.interactive = options.attended ?? true;
    this.approvalTimeoutMs = options.approvalTimeoutMs ?? 30_000;
    this.gate = new ApprovalGate(this);
  }

  /** Decides as a turn of one call does: the outcome counts once its records are durable. */
  async decide(request: GateRequest, signal: AbortSignal): Promise<GateOutcome> {
    const records = new RunLog(this);
    const outcome = await this.gate.decide(request, signal, records);
    await records.flush();
    return outcome;
  }

  async append(
    drafts: readonly { payload: EventPayload; runId: RunId | null }[],
  ): Promise<StoredEvent[]> {
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    return drafts.map(({ payload, runId }) => this.record(payload, runId));
  }

  appendStream(): never {
    throw new Error("the gate has nothing to stream");
  }

  record(payload: EventPayload, runId: RunId | null = RUN): StoredEvent {
    const event: StoredEvent = {
      session_id: SESSION,
      run_id: runId,
      seq: this.events.length + 1,
      timestamp: "2030-01-01T00:00:00.000Z",
      payload: EVENT_PAYLOADS[payload.type].parse(payload),
    };
    this.events.push(event);
    this.gate.apply(event);
    return event;
  }

  mode(): PermissionMode {
    return this.currentMode;
  }

  attended(): boolean {
    return this.interactive;
  }

  get types(): string[] {
    return this.events.map((event) => event.payload.type);
  }

  /** The one waiting approval, once it is escalated. */
  async waiting() {
    for (let turn = 0; turn < 100; turn += 1) {
      const [record] = this.gate.list("escalated");
      if (record !== undefined) return record;
      await Promise.resolve();
    }
    throw new Error("no approval is waiting");
  }
}

export function askFor(
  name = "a",
  options: Partial<
    Pick<GateRequest, "trigger" | "revalidate" | "verdict" | "detail" | "classify">
  > = {},
): GateRequest {
  const digest = name.charCodeAt(0).toString(16).padStart(64, "0");
  return {
    runId: RUN,
    toolCallId: createId<ToolCallId>(),
    tool: "bash",
    title: "Run a command",
    detail: null,
    fingerprint: digest,
    operation: {
      normalized_arguments_digest: digest,
      capabilities: [{ action: "bash", operation: "bash" }],
      resources: [],
      execution_context_digest: digest,
    },
    verdict: {
      effect: "ask",
      evaluations: [
        { action: "bash", label: name, effect: "ask", pattern: "*", source: "agent_document" },
      ],
    },
    trigger: "permission_policy",
    ...options,
  };
}

export const NEVER = new AbortController().signal;
