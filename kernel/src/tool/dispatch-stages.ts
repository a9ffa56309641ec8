import type {
  EventPayload,
  JsonObject,
  RunId,
  ToolCallError,
  ToolCallId,
  ToolCallPart,
  ToolOutcome,
  ToolResult,
} from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import type { OutputLimits } from "../artifact/capture-output.ts";
import type { EventDraft } from "../event/event-draft.ts";
import type { RunLog } from "../event/run-log.ts";
import type { ApprovalGate, GateRequest } from "../permission/approval-gate.ts";
import type { Policy } from "../permission/compile-rules.ts";
import type { Classification } from "../permission/permission-mode.ts";
import type { HookChain } from "../plugin/hook-chain.ts";
import type { HookSite } from "../plugin/hook-site.ts";
import type { KeyMutex } from "../support/key-mutex.ts";
import type { DispatchContext, PrepareStages } from "./call-context.ts";
import type { OutputHub } from "./output-hub.ts";
import type { Speculation } from "./speculation.ts";
import type { ToolSet } from "./tool-slots.ts";

/** One tool call of a committed turn and its place in the turn's content. */
export interface TurnCall {
  readonly part: ToolCallPart;
  readonly contentIndex: number;
}

/** The tool calls of one committed model turn, at most 64. */
export interface CommittedTurn extends DispatchContext {
  readonly modelTurnSeq: number;
  /** In content order. */
  readonly calls: readonly TurnCall[];
  /** Frozen at run admission. */
  readonly toolSet: ToolSet;
  /** Whether someone can type into a call; otherwise its standard input is at its end at once. */
  readonly stdinAttended: boolean;
  /** What was prepared while the turn streamed. */
  readonly speculation?: Speculation;
}

/** What a classifier is told of a call. */
export interface ClassifiedCall {
  readonly tool: string;
  readonly parameters: JsonObject;
}

/** The rooms that a call passes through. */
export interface DispatchStages extends PrepareStages {
  readonly log: RunLog;
  readonly artifacts: ArtifactStore;
  readonly gate: Pick<ApprovalGate, "decide">;
  /** Asks a model whether a call may run, on behalf of the run; every failure of it is `ask`. Absent: there is none. */
  classify?(call: ClassifiedCall, signal: AbortSignal): Promise<Classification>;
  /** Told after a call was refused that only a person could have allowed; may abort the turn. */
  onEscalated?(): void;
  /** The policy in force now; asked once per decision. */
  policy(): Policy;
  /** One per kernel: equal keys exclude each other in every session (T-027). */
  readonly keys: KeyMutex;
  readonly outputs: OutputHub;
  readonly limits: OutputLimits;
  /** Absent: nobody looks at calls on their way. */
  readonly hooks?: HookChain;
}

/** The classifier of a call's decision, ready to be asked; nothing where there is none. */
export function classifierOf(
  { classify }: Pick<DispatchStages, "classify">,
  call: ClassifiedCall,
): Pick<GateRequest, "classify"> {
  return classify === undefined ? {} : { classify: (signal) => classify(call, signal) };
}

/** Of the message of a call's error. */
export const MAX_ERROR_BYTES = 4096;

/** How one call ended; exactly what its terminal event says. */
export interface CallEnd {
  readonly outcome: ToolOutcome;
  readonly result: ToolResult | null;
  readonly error: ToolCallError | null;
}

export interface ToolCallOutcome extends CallEnd {
  readonly call: TurnCall;
  readonly toolCallId: ToolCallId;
  /** A decision was wanted of a user and none could be had. */
  readonly escalated: boolean;
}

/** Where hooks of a run happen: of one call, or of none. */
export function siteOf(turn: DispatchContext, toolCallId: ToolCallId | null): HookSite {
  const { sessionId, rootSessionId, runId, session } = turn;
  return { sessionId, rootSessionId, runId, toolCallId, ...(session && { session }) };
}

export function draft(runId: RunId, payload: EventPayload): EventDraft {
  return { runId, payload };
}
