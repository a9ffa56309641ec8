import { setMaxListeners } from "node:events";
import {
  CookieError,
  type Digest,
  type EventPayloadOf,
  type OutputDeclaration,
  type ToolCallId,
  type ToolPresentation,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { RunLog } from "../event/run-log.ts";
import { createId } from "../support/create-id.ts";
import { sleep } from "../support/deadline.ts";
import { CallOrder } from "./call-order.ts";
import { neverRan } from "./complete-call.ts";
import { decidePermission, refusal } from "./decide-permission.ts";
import {
  type CallEnd,
  type CommittedTurn,
  type DispatchStages,
  draft,
  type ToolCallOutcome,
  type TurnCall,
} from "./dispatch-stages.ts";
import { executeCall } from "./execute-call.ts";
import { fallbackFingerprint } from "./operation-identity.ts";
import { discardToken, type PreparedCall, prepareCall } from "./prepare-call.ts";
import { presentCall } from "./present-call.ts";

const SOON_MS = 5;

/**
 * Carries the tool calls of one committed model turn to their terminal events (E-087) and returns how they ended, in
 * model order.
 *
 * Bad arguments, denials, crashes, timeouts and cancellations are outcomes that the model can read, so none of them
 * rejects. It rejects only when the log cannot be written, after everything that was started has ended.
 *
 * @param signal Aborted when the run is cancelled; calls that wait then never run, running ones get two seconds.
 */
export async function dispatchTurn(
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<ToolCallOutcome[]> {
  // Every call of the turn listens; Node would warn of a leak from the eleventh on.
  setMaxListeners(0, signal);
  const { log } = stages;
  const preparing = Promise.all(turn.calls.map((call) => prepare(call, turn, stages, signal)));
  const recorded = recordUnlessSoon(preparing, log);
  const calls = await preparing;
  try {
    await recorded;
    log.hold(calls.map((call) => draft(turn.runId, startedEvent(call, turn))));
    for (const call of calls) {
      await decide(call, turn, stages, signal);
      if (call.escalated) stages.onEscalated?.();
    }
    log.hold(endDrafts(calls.filter(hasEnded), turn));
    if (!calls.every(hasEnded)) await log.flush();
    const parallel = calls.filter(isParallel);
    const exclusive = calls.filter((call) => !hasEnded(call) && !isParallel(call));
    const order = new CallOrder();
    const run = async (call: DispatchedCall): Promise<void> => {
      await execute(call, turn, stages, signal, order);
      log.hold(endDrafts([call], turn));
      // The last end is recorded with what follows the turn.
      if (!calls.every(hasEnded)) await log.flush();
    };
    await allEnded(parallel.map(run));
    for (const call of exclusive) await run(call);
  } finally {
    for (const call of calls) drop(call, stages);
  }
  return calls.map(outcomeOf);
}

/** A turn that waits long for its preparations is not kept from the record. */
function recordUnlessSoon(preparing: Promise<unknown>, log: RunLog): Promise<void> {
  const soon = preparing.then(() => true);
  const recorded = Promise.race([soon, sleep(SOON_MS).then(() => false)]).then((isSoon) =>
    isSoon ? undefined : log.flush(),
  );
  // Whoever waits for the preparations waits for it next.
  recorded.catch(() => undefined);
  return recorded;
}

/** One call on its way through the turn. */
interface DispatchedCall {
  readonly call: TurnCall;
  readonly toolCallId: ToolCallId;
  readonly output: OutputDeclaration;
  readonly presentation: ToolPresentation;
  readonly fingerprint: Digest;
  /** Absent when the call could not be prepared, and once it is denied, and once it runs. */
  prepared: PreparedCall | undefined;
  end: CallEnd | undefined;
  escalated: boolean;
}

async function prepare(
  call: TurnCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<DispatchedCall> {
  const { part } = call;
  const early = turn.speculation?.take(part);
  const toolCallId = early?.toolCallId ?? createId<ToolCallId>();
  try {
    const request = { toolCallId, part, toolSet: turn.toolSet, context: turn };
    const prepared = await (early?.prepared ?? prepareCall(request, stages, signal));
    const { presentation, fingerprint, bound } = prepared;
    return {
      call,
      toolCallId,
      output: bound.tool.output,
      presentation,
      fingerprint,
      prepared,
      end: undefined,
      escalated: false,
    };
  } catch (error) {
    return {
      call,
      toolCallId,
      output: turn.toolSet.get(part.name)?.tool.output ?? { mode: "single" },
      presentation: presentCall(part.name, null),
      fingerprint: fallbackFingerprint(part.name, part.raw_input ?? part.input),
      prepared: undefined,
      end: neverRan(error),
      escalated: false,
    };
  }
}

/** Permissions are resolved one call after the other, so that prompts come one at a time (T-020). */
async function decide(
  call: DispatchedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<void> {
  const { prepared } = call;
  if (prepared === undefined) return;
  if (!signal.aborted) {
    const decision = await decidePermission(prepared, turn, stages, signal);
    if (decision.granted && !signal.aborted) return;
    if (!decision.granted) {
      call.end = neverRan(refusal(decision));
      call.escalated = decision.escalated;
    }
  }
  if (signal.aborted) call.end = neverRan(new CookieError("cancelled", "the run was cancelled"));
  drop(call, stages);
}

async function execute(
  call: DispatchedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
  order: CallOrder,
): Promise<void> {
  const { prepared } = call;
  if (prepared === undefined) return;
  call.prepared = undefined;
  call.end = await executeCall(prepared, call.call, turn, stages, signal, order);
}

function drop(call: DispatchedCall, stages: DispatchStages): void {
  if (call.prepared) discardToken(call.prepared, stages.plugins);
  call.prepared = undefined;
}

function endDrafts(calls: readonly DispatchedCall[], turn: CommittedTurn): EventDraft[] {
  return calls.map((call) => draft(turn.runId, terminatedEvent(call, turn)));
}

/** Waits for all, then rejects if one did: nothing may still run when a turn is given up. */
async function allEnded(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

function startedEvent(
  { call, toolCallId, output, presentation, fingerprint }: DispatchedCall,
  turn: CommittedTurn,
): EventPayloadOf<"tool_call_started"> {
  return {
    type: "tool_call_started",
    tool_call_id: toolCallId,
    owner: ownerOf(call, turn),
    tool: call.part.name,
    presentation,
    operation_fingerprint: fingerprint,
    output,
  };
}

function terminatedEvent(
  call: DispatchedCall,
  turn: CommittedTurn,
): EventPayloadOf<"tool_call_terminated"> {
  return {
    type: "tool_call_terminated",
    tool_call_id: call.toolCallId,
    owner: ownerOf(call.call, turn),
    ...endOf(call),
  };
}

function ownerOf({ part, contentIndex }: TurnCall, { modelTurnSeq }: CommittedTurn) {
  return {
    model_turn_seq: modelTurnSeq,
    content_index: contentIndex,
    model_call_id: part.id,
    provider_item_id: part.provider_item_id,
  };
}

function outcomeOf(call: DispatchedCall): ToolCallOutcome {
  const { toolCallId, escalated } = call;
  return { call: call.call, toolCallId, escalated, ...endOf(call) };
}

function endOf({ end }: DispatchedCall): CallEnd {
  if (end === undefined) throw new CookieError("engine", "a tool call has no end");
  return end;
}

function hasEnded({ end }: DispatchedCall): boolean {
  return end !== undefined;
}

function isParallel({ prepared }: DispatchedCall): boolean {
  return prepared?.bound.tool.concurrency === "parallel";
}
