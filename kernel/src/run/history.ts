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
import { rehydratedMessage, summaryMessage, withoutMedia } from "./checkpoint-messages.ts";
import { JudgedMedia } from "./judged-media.ts";
import { byteLengthOf, byteLengthOfResult } from "./message-size.ts";

type ToolMessage = Extract<HistoryMessage, { role: "tool" }>;
type CallResult = ToolMessage["results"][number];

/** What is known of one message; the answers to calls belong to the event that made the calls. */
export interface MessageFacts {
  /** 0: it stands for events and is none. */
  readonly seq: number;
  readonly byteLength: number;
}

class CountedMessage implements MessageFacts {
  readonly seq: number;
  readonly #message: HistoryMessage;
  #byteLength: number | undefined;

  constructor(seq: number, message: HistoryMessage) {
    this.seq = seq;
    this.#message = message;
  }

  /** Counted when somebody asks: most messages of a log that is read are never asked about. */
  get byteLength(): number {
    this.#byteLength ??= byteLengthOf(this.#message);
    return this.#byteLength;
  }

  /** One result took the place of another; yields by how much the counted length grew. */
  exchange(before: CallResult, after: CallResult): number {
    if (this.#byteLength === undefined) return 0;
    const grownBytes = byteLengthOfResult(after) - byteLengthOfResult(before);
    this.#byteLength += grownBytes;
    return grownBytes;
  }
}

/** The newest checkpoint of the history. */
export interface LastCheckpoint {
  readonly seq: number;
  /** Files that came back after it, oldest reading first. */
  readonly rehydrated: readonly string[];
}

/** One committed turn whose calls are answered in model order, whatever order they ended in (T-024). */
interface OpenTurn {
  readonly turnSeq: number;
  readonly message: { role: "tool"; results: CallResult[] };
  readonly facts: CountedMessage;
  readonly slots: Map<number, number>;
  unanswered: number;
}

/**
 * What the model has been told and has said, kept as the messages of the next request. Messages are added and
 * never rebuilt, so whoever maps them can remember the mapping per message. A checkpoint drops those it stands for.
 */
export class History {
  #messages: HistoryMessage[] = [];
  /** Of each message. */
  #facts: CountedMessage[] = [];
  /** Of the first `#counted` messages. */
  #byteLength = 0;
  #counted = 0;
  #checkpoint: LastCheckpoint | null = null;
  #runFromSeq = 0;
  readonly #callIds = new Set<string>();
  #open: OpenTurn | null = null;
  #hasMedia = false;
  #selected: ModelSelection | null = null;
  /** What each model made of the media in the messages. */
  media = new JudgedMedia();
  contextDocuments: readonly ContextDocument[] = [];

  apply(event: StoredEvent): void {
    const { payload, seq } = event;
    this.media.apply(payload);
    switch (payload.type) {
      case "agent_md_loaded":
        this.contextDocuments = payload.entries;
        break;
      case "run_started":
        this.#selected = payload.selection.model;
        this.#runFromSeq = seq;
        break;
      case "session_reverted":
        // Calls that it cut off are not answered any more.
        this.#open = null;
        break;
      case "message_injected":
        this.#inject(payload, seq);
        break;
      case "user_input_submitted":
        this.#open = null;
        this.#push({ role: "user", text: payload.input }, seq);
        break;
      case "model_turn_committed":
        this.#commit(payload, seq);
        break;
      case "context_checkpoint_committed":
        this.#foldAway(payload, seq);
        break;
      case "context_rehydrated":
        this.#rehydrate(payload);
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

  /** Of each message, in their order. */
  get facts(): readonly MessageFacts[] {
    return this.#facts;
  }

  /** Of all messages together. */
  get byteLength(): number {
    for (const facts of this.#facts.slice(this.#counted)) this.#byteLength += facts.byteLength;
    this.#counted = this.#facts.length;
    return this.#byteLength;
  }

  get checkpoint(): LastCheckpoint | null {
    return this.#checkpoint;
  }

  /** Where the newest run begins. */
  get runFromSeq(): number {
    return this.#runFromSeq;
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
  #inject({ role, input }: EventPayloadOf<"message_injected">, seq: number): void {
    this.#open = null;
    if (role === "assistant" && this.#selected !== null) {
      const content = [{ type: "text" as const, text: input }];
      this.#push({ role, content, model: this.#selected }, seq);
      return;
    }
    const text =
      role === "user" ? input : `<injected_message role="${role}">\n${input}\n</injected_message>`;
    this.#push({ role: "user", text, injected: true }, seq);
  }

  #commit(payload: EventPayloadOf<"model_turn_committed">, seq: number): void {
    this.#open = null;
    const { content } = payload.turn;
    if (content.length === 0) return;
    this.#push({ role: "assistant", content, model: payload.resolved_model }, seq);
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
    this.#open = {
      turnSeq: payload.model_turn_seq,
      message,
      facts: this.#push(message, seq),
      slots,
      unanswered: results.length,
    };
  }

  #answer(owner: ToolCallOwner, payload: EventPayloadOf<"tool_call_terminated">): void {
    const open = this.#open;
    const slot = open?.slots.get(owner.content_index);
    const before = slot === undefined ? undefined : open?.message.results[slot];
    if (!open || open.turnSeq !== owner.model_turn_seq || slot === undefined || !before) return;
    const result: CallResult = {
      callId: before.callId,
      name: before.name,
      ...renderResult(payload),
      ...this.#mediaOf(payload.result),
    };
    open.message.results[slot] = result;
    const grownBytes = open.facts.exchange(before, result);
    if (this.#counted === this.#facts.length) this.#byteLength += grownBytes;
    open.unanswered -= 1;
    if (open.unanswered === 0) this.#open = null;
  }

  #push(message: HistoryMessage, seq: number): CountedMessage {
    const facts = new CountedMessage(seq, message);
    this.#messages.push(message);
    this.#facts.push(facts);
    return facts;
  }

  /** A window of a provider's own is none that can be sent, so the messages stay (S 10.4). */
  #foldAway(payload: EventPayloadOf<"context_checkpoint_committed">, seq: number): void {
    const { checkpoint, boundaries } = payload;
    if (checkpoint.type !== "internal_summary") return;
    const fromSeq = boundaries.recent_from_seq ?? boundaries.source_through_seq + 1;
    const first = this.#facts.findIndex((facts) => facts.seq >= fromSeq);
    const kept = first < 0 ? [] : this.#messages.slice(first).map(withoutMedia);
    const keptFacts = first < 0 ? [] : this.#facts.slice(first);
    this.#messages = [];
    this.#facts = [];
    this.#open = null;
    this.#hasMedia = false;
    this.media = new JudgedMedia();
    this.#countAnew();
    this.#checkpoint = { seq, rehydrated: [] };
    this.#push(summaryMessage(checkpoint.summary), 0);
    kept.forEach((message, index) => {
      this.#push(message, keptFacts[index]?.seq ?? 0);
    });
  }

  /** Right behind the summary, before what was kept beside it. */
  #rehydrate({ files }: EventPayloadOf<"context_rehydrated">): void {
    const checkpoint = this.#checkpoint;
    if (checkpoint === null || checkpoint.rehydrated.length > 0) return;
    const message = rehydratedMessage(files);
    this.#messages = this.#messages.toSpliced(1, 0, message);
    this.#facts = this.#facts.toSpliced(1, 0, new CountedMessage(0, message));
    this.#countAnew();
    this.#checkpoint = { ...checkpoint, rehydrated: files.map(({ path }) => path) };
  }

  #countAnew(): void {
    this.#counted = 0;
    this.#byteLength = 0;
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
