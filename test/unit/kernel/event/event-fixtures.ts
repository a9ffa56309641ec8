import type {
  AttemptId,
  EventPayload,
  EventPayloadOf,
  RunId,
  SessionId,
  StoredEvent,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import type {
  LogFile,
  SessionPublication,
  SessionStore,
  StoredMetadata,
  TreeLease,
} from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

const digest = "0".repeat(64);
const revision = `sha256:${digest}`;
const model = { model: "custom.test/model", variant: null };
export const USAGE = {
  input_tokens: 1,
  input_tokens_no_cache: null,
  input_tokens_cache_read: null,
  input_tokens_cache_write: null,
  output_tokens: 1,
  output_tokens_text: null,
  output_tokens_reasoning: null,
};
const agent: EventPayloadOf<"run_started">["agent"] = {
  agent: "default",
  schema: 6,
  mode: "primary",
  description: "an agent",
  document_source: "built_in",
  document_fingerprint: digest,
  composed_prompt: "be helpful",
  prompt_fingerprint: digest,
  max_output_tokens: 0,
  permissions: [],
  fallback_chain: [model],
  selected_suffix_start: 0,
};
export const revisions = {
  runtime_revision: revision,
  catalog_revision: revision,
  provider_state_revision: revision,
  model_revision: revision,
  agent_revision: revision,
  recipe_registry_revision: revision,
  manifest_revision: revision,
};
const modelError = {
  kind: "transport",
  message: "broken",
  retryable: true,
  stage: "connect",
  http_status: null,
  bytes_received: null,
  vendor_code: null,
  request_id: null,
  retry_after_ms: null,
} as const;

export function draft(payload: EventPayload, runId: RunId | null = null): EventDraft {
  return { payload, runId };
}

export function sessionCreated(): EventDraft {
  return draft({
    type: "session_created",
    origin: { type: "root" },
    cwd_identity: "/w",
    creation_selection: { agent: "default", model },
    creation_agent: agent,
    ...revisions,
    short_id: "default_00000000",
  });
}

export function metadataOf(sessionId: SessionId): StoredMetadata {
  return {
    session_id: sessionId,
    origin: { type: "root" },
    cwd_identity: "/w",
    creation_selection: { agent: "default", model },
    ...revisions,
    title: null,
    title_updated_seq: 0,
    last_event_seq: 1,
    last_activity: "2026-01-01T00:00:00.000Z",
    status: "idle",
    skipped_events: [],
  };
}

export function overlaySet(resource = "*"): EventDraft {
  return draft({
    type: "session_permission_overlay_set",
    overlay: { rules: [{ action: "bash", resource, effect: "ask", source: "user" }] },
  });
}

export function diagnostic(message = "slow"): EventDraft {
  return draft({ type: "plugin_diagnostic", plugin: "p", kind: "event_drop", message, count: 1 });
}

/** The drafts of one run, whose ids belong together. */
export class RunScript {
  readonly runId = createId<RunId>();
  readonly callId = createId<ToolCallId>();
  readonly attemptId = createId<AttemptId>();
  readonly #turnSeq: number;

  constructor(turnSeq = 1) {
    this.#turnSeq = turnSeq;
  }

  of(payload: EventPayload): EventDraft {
    return draft(payload, this.runId);
  }

  started(): EventDraft {
    return this.of({
      type: "run_started",
      client_run_id: this.runId,
      selection: { agent: "default", model },
      agent,
      ...revisions,
      selected_suffix: [
        {
          selection: model,
          adapter_id: "test",
          wire_model_id: "model",
          endpoint_identity: "http://127.0.0.1",
          fingerprint: digest,
        },
      ],
      input_through_seq: 0,
      request_digest: digest,
    });
  }

  input(input = "hello"): EventDraft {
    return this.of({ type: "user_input_submitted", input });
  }

  attempt(changes: Partial<EventPayloadOf<"model_attempt_started">> = {}): EventDraft {
    return this.of({
      type: "model_attempt_started",
      attempt_id: this.attemptId,
      attempt_ordinal: 1,
      fallback_index: 0,
      retry_ordinal: 0,
      resolved_model: model,
      prompt_fingerprint: digest,
      ...changes,
    });
  }

  text(text: string): EventDraft {
    return this.of({ type: "text_delta", attempt_id: this.attemptId, text });
  }

  abandoned(attemptId = this.attemptId): EventDraft {
    return this.of({ type: "attempt_abandoned", attempt_id: attemptId, error: modelError });
  }

  fallback(changes: Partial<EventPayloadOf<"model_fallback">> = {}): EventDraft {
    return this.of({
      type: "model_fallback",
      from: model,
      to: model,
      from_fallback_index: 0,
      to_fallback_index: 1,
      attempts_on_from: 1,
      error: modelError,
      ...changes,
    });
  }

  turn(changes: Partial<EventPayloadOf<"model_turn_committed">> = {}): EventDraft {
    return this.of({
      type: "model_turn_committed",
      attempt_id: this.attemptId,
      model_turn_seq: this.#turnSeq,
      resolved_model: model,
      input_through_seq: 0,
      turn: {
        content: [
          { type: "text", text: "I look" },
          {
            type: "tool_call",
            id: "call-1",
            provider_item_id: "item-1",
            name: "read",
            input: { path: "a" },
            raw_input: null,
          },
        ],
        finish_reason: "tool_calls",
        usage: USAGE,
      },
      warnings: [],
      ...changes,
    });
  }

  usage(turnSeq = this.#turnSeq): EventDraft {
    return this.of({
      type: "model_usage_recorded",
      model_turn_seq: turnSeq,
      agent_id: "default",
      resolved_model: model,
      usage: USAGE,
      estimated_cost_pico_usd: null,
    });
  }

  get owner(): EventPayloadOf<"tool_call_started">["owner"] {
    return {
      model_turn_seq: this.#turnSeq,
      content_index: 1,
      model_call_id: "call-1",
      provider_item_id: "item-1",
    };
  }

  callStarted(changes: Partial<EventPayloadOf<"tool_call_started">> = {}): EventDraft {
    return this.of({
      type: "tool_call_started",
      tool_call_id: this.callId,
      owner: this.owner,
      tool: "read",
      presentation: { title: "Read a", primary_argument: "a" },
      operation_fingerprint: digest,
      output: { mode: "single" },
      ...changes,
    });
  }

  progress(message: string): EventDraft {
    return this.of({ type: "tool_call_progress", tool_call_id: this.callId, message });
  }

  callEnded(changes: Partial<EventPayloadOf<"tool_call_terminated">> = {}): EventDraft {
    return this.of({
      type: "tool_call_terminated",
      tool_call_id: this.callId,
      owner: this.owner,
      outcome: "completed",
      result: {
        title: "Read a",
        output: "text",
        display: null,
        metadata: {},
        retained_output: null,
        attachments: [],
      },
      error: null,
      ...changes,
    });
  }

  completed(): EventDraft {
    return this.of({ type: "run_completed", final_text: "done" });
  }

  interrupted(): EventDraft {
    return this.of({ type: "run_interrupted", reason: "daemon restart" });
  }
}

/** What `drafts` look like in the log of a session, one physical line each. */
export function linesOf(sessionId: SessionId, drafts: readonly EventDraft[]): string[] {
  return eventsOf(sessionId, drafts).map((event) => JSON.stringify(event));
}

export function eventsOf(sessionId: SessionId, drafts: readonly EventDraft[]): StoredEvent[] {
  return drafts.map(({ payload, runId }, index) => ({
    session_id: sessionId,
    run_id: runId,
    seq: index + 1,
    timestamp: "2026-01-01T00:00:00.000Z",
    payload,
  }));
}

/** A log in memory whose writes and syncs can be made to fail. */
export class MemoryLog implements LogFile {
  bytes: Buffer;
  /** What would be left after a loss of power. */
  durable: Buffer;
  appends = 0;
  syncs = 0;
  failAppend: ((bytes: Uint8Array) => number | undefined) | undefined;
  failSync = false;
  failRead = false;

  constructor(bytes: Uint8Array = Buffer.alloc(0)) {
    this.bytes = Buffer.from(bytes);
    this.durable = this.bytes;
  }

  get byteLength(): number {
    return this.bytes.byteLength;
  }

  get text(): string {
    return this.bytes.toString("utf8");
  }

  async *read(fromByte = 0): AsyncGenerator<Uint8Array> {
    if (this.failRead) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    const bytes = this.bytes;
    for (let at = fromByte; at < bytes.byteLength; at += 1000) yield bytes.subarray(at, at + 1000);
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.appends += 1;
    if (this.failAppend?.(bytes) !== undefined) {
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    }
    this.bytes = Buffer.concat([this.bytes, bytes]);
  }

  async sync(): Promise<void> {
    this.syncs += 1;
    if (this.failSync) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    this.durable = this.bytes;
  }

  async truncate(byteLength: number): Promise<void> {
    this.bytes = this.bytes.subarray(0, byteLength);
  }

  async close(): Promise<void> {}
}

/** A store with one session, whose log is in memory. */
export class MemoryStore implements SessionStore {
  readonly directory = "/nowhere";
  readonly log: MemoryLog;
  readonly lease: { rootId: SessionId; held: boolean; release(): void };
  opened = 0;
  publications = 0;
  failPublication = false;

  constructor(sessionId: SessionId, bytes?: Uint8Array) {
    this.log = new MemoryLog(bytes);
    this.lease = {
      rootId: sessionId,
      held: true,
      release() {
        this.held = false;
      },
    };
  }

  async list(): Promise<{ sessions: StoredMetadata[]; diagnostics: string[] }> {
    return { sessions: [], diagnostics: [] };
  }

  async roots(): Promise<SessionId[]> {
    return [];
  }

  async find(): Promise<undefined> {
    return undefined;
  }

  async acquire(): Promise<TreeLease> {
    return this.lease;
  }

  async access(): Promise<"owned"> {
    return "owned";
  }

  async publish({ bytes }: SessionPublication): Promise<{ lease: TreeLease; file: LogFile }> {
    this.publications += 1;
    if (this.failPublication) throw new Error("ENOSPC: no space left on device");
    const chunks: Uint8Array[] = [];
    for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) chunks.push(chunk);
    this.log.bytes = Buffer.concat(chunks);
    this.log.durable = this.log.bytes;
    return { lease: this.lease, file: this.log };
  }

  async open(): Promise<LogFile> {
    this.opened += 1;
    return this.log;
  }

  heldLease(): TreeLease {
    return this.lease;
  }

  async children(): Promise<SessionId[]> {
    return [];
  }

  async byteLength(): Promise<number> {
    return this.log.byteLength;
  }

  async writeMetadata(): Promise<void> {}

  async recordCrossReferences(): Promise<void> {}

  async crossReferences(): Promise<never[]> {
    return [];
  }

  async remove(): Promise<void> {}

  async sweep(): Promise<void> {}

  async close(): Promise<void> {}
}
