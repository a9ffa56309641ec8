import type {
  AdditionalMessage,
  AssistantPart,
  JsonObject,
  MediaPlacement,
  ModelSelection,
  ModelTurn,
  ResolvedModel,
  ToolAttachment,
  ToolCallPart,
  Usage,
} from "@cookie-agent/sdk/protocol";
import type { MediaTarget } from "../config/media-target.ts";
import type { HeaderChange, RequestHeaders } from "./request-headers.ts";

/** One element of the conversation as a model reads it; the same object is mapped only once. */
export type HistoryMessage =
  | {
      readonly role: "user";
      readonly text: string;
      /** Not what a person said. */
      readonly injected?: true;
    }
  | {
      readonly role: "assistant";
      readonly content: readonly AssistantPart[];
      /** Who wrote it: its native parts are replayed only to the same model. */
      readonly model: ModelSelection;
    }
  | { readonly role: "tool"; readonly results: readonly ToolResultMessage[] };

/** The answer to one tool call of the assistant message before it. */
export interface ToolResultMessage {
  readonly callId: string;
  readonly name: string;
  readonly output: string;
  readonly isError: boolean;
  readonly details: JsonObject | null;
  /** Media in the result; absent: none. */
  readonly attachments?: readonly ToolAttachment[];
  /** What follows the results as messages of their own; absent: nothing. */
  readonly additional?: readonly AdditionalMessage[];
}

/** One media part as the model gets it, or words in its place. */
export type SuppliedPart =
  | { readonly kind: "media"; readonly placement: MediaPlacement; readonly data: string }
  | { readonly kind: "note"; readonly text: string };

/** The media of one request, by the part of the history that they stand for. */
export type SuppliedMedia = ReadonlyMap<ToolAttachment, SuppliedPart>;

/** A tool as a model sees it; `parameters` is a JSON Schema. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** How a model is asked; an absent member is left to the provider. */
export interface Sampling {
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
}

export interface ModelRequest {
  readonly system: string;
  readonly history: readonly HistoryMessage[];
  /** Absent: the history holds no media. */
  readonly media?: SuppliedMedia;
  readonly tools: readonly ToolSpec[];
  /** Null: the model's own default. */
  readonly maxOutputTokens: number | null;
  /** Call ids that the run has already used; the turn's ids keep clear of them (B118). */
  readonly usedCallIds?: ReadonlySet<string>;
  /** In place of what the model's own configuration says. */
  readonly sampling?: Sampling;
  readonly headers?: HeaderChange;
  /** Not part of the conversation that goes on; leaves alone what is remembered of that. */
  readonly isAside?: true;
  /** Told of the head of the response; its body waits. */
  onResponse?(status: number, headers: Readonly<Record<string, string>>): Promise<void>;
}

/** What one response yields, in order; `finish` is always the last. */
export type ModelStreamPart =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "reasoning_delta"; readonly text: string }
  | { readonly type: "tool_named"; readonly callId: string; readonly name: string }
  | { readonly type: "tool_arguments"; readonly part: ToolCallPart }
  | { readonly type: "finish"; readonly turn: ModelTurn; readonly warnings: string[] };

/** A model frozen for a run: its credentials, options and variant no longer change (C-172). */
export interface BoundModel {
  readonly resolved: ResolvedModel;
  readonly selection: ModelSelection;
  readonly contextTokens: number | null;
  readonly outputTokens: number | null;
  readonly toolCalling: boolean;
  /** What it takes beside text. */
  readonly media: MediaTarget;
  /** Which of the sampling parameters it takes. */
  readonly takes: { readonly temperature: boolean; readonly topP: boolean };
  /** Null: it is not asked over HTTP. */
  readonly headers: RequestHeaders | null;
  /** What a request with this limit asks for, unless it says otherwise. */
  samplingFor(maxOutputTokens: number | null): Sampling;
  /** Pico-USD, or null when the usage cannot be priced (S-233). */
  price(usage: Usage): bigint | null;
  /**
   * One request, one response, no retry (C-152). The iterator rejects with `ModelError`; ending it early closes
   * the connection.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelStreamPart>;
}
