import type {
  EventPayloadOf,
  JsonObject,
  ModelSelection,
  StoredEvent,
  ToolCallOwner,
  ToolResult,
} from "@cookie-agent/sdk/protocol";
import type { ContextDocument } from "../config/agents-md.ts";
import type { HistoryMessage } from "../model/bound-model.ts";
import { mediaOfResult } from "../model/place-media.ts";
import { JudgedMedia } from "./judged-media.ts";

type ToolMessage = Extract<HistoryMessage, { role: "tool" }>;
type CallResult = ToolMessage["results"][number];

/** One committed turn whose calls are answered in model order, whatever order they ended in (T-024). */
interface OpenTurn {
  readonly turnSeq: number;
  readonly message: { role: "tool"; results: CallResult[] };
  readonly slots: Map<number, number>;
  unanswered: number;
}

/**
 * What the model has been told and has said, kept as the messages of the next request. Messages are added and
 * never rebuilt, so whoever maps them can remember the mapping per message.
 */
export class History {
  readonly #messages: HistoryMessage[] = [];
  readonly #callIds = new Set<string>();
  #open: OpenTurn | null = null;
  #hasMedia = false;
  #selected: ModelSelection | null = null;
  /** What each model made of the media in the messages. */
  readonly media = new JudgedMedia();
  contextDocuments: readonly ContextDocument[] = [];

  apply(event: StoredEvent): void {
    const { payload } = event;
    this.media.apply(payload);
    switch (payload.type) {
      case "agent_md_loaded":
        this.contextDocuments = payload.entries;
        break;
      case "run_started":
        this.#selected = payload.selection.model;
        break;
      case "session_reverted":
        // Calls that it cut off are not answered any more.
        this.#open = null;
        break;
      case "message_injected":
        this.#inject(payload);
        break;
      case "user_input_submitted":
        this.#open = null;
        this.#messages.push({ role: "user", text: payload.input });
        break;
      case "model_turn_committed":
        this.#commit(payload);
        break;
      case "tool_call_terminated":
        this.#answer(payload.owner, payload);
        break;
      default:
        break;
    }
  }

  /** The messages so far; every call in them has an answer, one that never ran a note saying so (B116). */
  get messages(): readonly HistoryMessage[] {
    return this.#messages;
  }

  /** Whether any result holds media, which then have to be supplied with each request. */
  get hasMedia(): boolean {
    return this.#hasMedia;
  }

  /** Model call ids already used, so that a repeated one can be told apart (B118). */
  get usedCallIds(): ReadonlySet<string> {
    return this.#callIds;
  }

  /** A system message may not stand in the middle of a conversation, so it is told by the side of the user. */
  #inject({ role, input }: EventPayloadOf<"message_injected">): void {
    this.#open = null;
    if (role === "assistant" && this.#selected !== null) {
      const content = [{ type: "text" as const, text: input }];
      this.#messages.push({ role, content, model: this.#selected });
      return;
    }
    const text =
      role === "user" ? input : `<injected_message role="${role}">\n${input}\n</injected_message>`;
    this.#messages.push({ role: "user", text, injected: true });
  }

  #commit(payload: EventPayloadOf<"model_turn_committed">): void {
    this.#open = null;
    const { content } = payload.turn;
    if (content.length === 0) return;
    this.#messages.push({ role: "assistant", content, model: payload.resolved_model });
    const slots = new Map<number, number>();
    const results: CallResult[] = [];
    for (const [index, part] of content.entries()) {
      if (part.type !== "tool_call") continue;
      this.#callIds.add(part.id);
      slots.set(index, results.length);
      results.push({ callId: part.id, name: part.name, ...NEVER_RAN });
    }
    if (results.length === 0) return;
    const message = { role: "tool" as const, results };
    this.#messages.push(message);
    this.#open = {
      turnSeq: payload.model_turn_seq,
      message,
      slots,
      unanswered: results.length,
    };
  }

  #answer(owner: ToolCallOwner, payload: EventPayloadOf<"tool_call_terminated">): void {
    const open = this.#open;
    const slot = open?.slots.get(owner.content_index);
    const before = slot === undefined ? undefined : open?.message.results[slot];
    if (!open || open.turnSeq !== owner.model_turn_seq || slot === undefined || !before) return;
    open.message.results[slot] = {
      callId: before.callId,
      name: before.name,
      ...renderResult(payload),
      ...this.#mediaOf(payload.result),
    };
    open.unanswered -= 1;
    if (open.unanswered === 0) this.#open = null;
  }

  #mediaOf(result: ToolResult | null): Pick<CallResult, "attachments" | "additional"> {
    const { attachments = [], additional_messages: additional = [] } = result ?? {};
    if (attachments.length === 0 && additional.length === 0) return {};
    this.#hasMedia = true;
    this.media.add(mediaOfResult({ attachments, additional }));
    return { attachments, additional };
  }
}

const NEVER_RAN = {
  output: "[interrupted] This call never ran: the run ended before it could start.",
  isError: true,
  details: null,
} as const;

/** What the model reads of a finished call: its output, and after a failure the error beside it (T 1.11). */
export function renderResult(payload: EventPayloadOf<"tool_call_terminated">): {
  output: string;
  isError: boolean;
  details: JsonObject | null;
} {
  const { result, error } = payload;
  const output = result?.output ?? "";
  const details = result && Object.keys(result.metadata).length > 0 ? result.metadata : null;
  if (!error) {
    return { output, isError: flagsError(result?.metadata), details };
  }
  const message = `[error ${error.code}] ${renderErrorMessage(error.code, error.message)}`;
  return { output: output === "" ? message : `${output}\n\n${message}`, isError: true, details };
}

/** A tool may complete and still call its result an error (T-130). */
function flagsError(metadata: JsonObject | undefined): boolean {
  const flags = metadata?.["plugin"];
  return (
    typeof flags === "object" && flags !== null && "is_error" in flags && flags.is_error === true
  );
}

/** A denial travels as JSON for programs; the model reads its reason and feedback (T-045). */
function renderErrorMessage(code: string, message: string): string {
  if (code !== "permission_denied") return message;
  try {
    const denial: unknown = JSON.parse(message);
    if (typeof denial === "object" && denial !== null && "reason" in denial) {
      const feedback =
        "feedback" in denial && denial.feedback ? `: ${String(denial.feedback)}` : "";
      return `${String(denial.reason)}${feedback}`;
    }
  } catch {
    // not the structured form: shown as it is
  }
  return message;
}
