import { CookieError, isCookieError, type ToolCallResult } from "@cookie-agent/sdk/protocol";
import type { HookChain } from "../plugin/hook-chain.ts";
import { sleep } from "../support/deadline.ts";
import { passAfterResult } from "./after-result.ts";
import { type HookedCall, passBeforeCall } from "./before-call.ts";
import type { CallOrder } from "./call-order.ts";
import { CallOutput } from "./call-output.ts";
import { completeCall, failCall, neverRan } from "./complete-call.ts";
import type { CallEnd, CommittedTurn, DispatchStages, TurnCall } from "./dispatch-stages.ts";
import { discardToken, type PreparedCall, prepareCall, requirePinned } from "./prepare-call.ts";
import { holdKeys } from "./serialization-keys.ts";

/**
 * Runs one permitted call to its end: its hooks, its keys, one request, its output. Whatever happens to the plugin is an end
 * that the model can read, so this does not reject.
 *
 * @param signal Aborted when the run is cancelled; the plugin host then allows two seconds of clean-up (E-105).
 */
export function executeCall(
  prepared: PreparedCall,
  call: TurnCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
  order?: CallOrder,
): Promise<CallEnd> {
  const permitted = { prepared, call };
  const { hooks } = stages;
  return hooks?.has("tool_before_call") === true
    ? executeAfterHooks(hooks, permitted, { turn, stages, signal, order })
    : executeHooked(permitted, turn, stages, signal);
}

async function executeAfterHooks(
  hooks: HookChain,
  permitted: HookedCall,
  within: {
    readonly turn: CommittedTurn;
    readonly stages: DispatchStages;
    readonly signal: AbortSignal;
    readonly order: CallOrder | undefined;
  },
): Promise<CallEnd> {
  const { turn, stages, signal, order } = within;
  const place = order?.enter();
  try {
    const hooked = await passBeforeCall(hooks, permitted, turn, stages, signal);
    // Keys are asked for in model order, whichever hook answers first.
    if (hooked.prepared.keys.length > 0) await place?.turn;
    const end = executeHooked(hooked, turn, stages, signal);
    place?.leave();
    return await end;
  } catch (error) {
    return neverRan(error);
  } finally {
    place?.leave();
  }
}

async function executeHooked(
  { prepared, call }: HookedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<CallEnd> {
  let release: () => void;
  try {
    release = await holdKeys(stages.keys, prepared.keys, signal);
  } catch (error) {
    discardToken(prepared, stages.plugins);
    return neverRan(error);
  }
  let end: CallEnd;
  try {
    if (signal.aborted) throw new CookieError("cancelled", "the call was cancelled");
    requirePrepared(prepared, stages);
    end = await runCall(prepared, call, turn, stages, signal);
  } catch (error) {
    discardToken(prepared, stages.plugins);
    return neverRan(error);
  } finally {
    release();
  }
  if (stages.hooks?.has("tool_after_result") !== true) return end;
  return passAfterResult(stages.hooks, end, prepared, turn, stages, signal);
}

/** What was permitted must be what runs: a program that was replaced meanwhile was not asked about (E-075). */
function requirePrepared({ bound }: PreparedCall, stages: DispatchStages): void {
  const { implementation } = requirePinned(bound, stages);
  if (implementation === bound.tool.implementation) return;
  throw new CookieError(
    "operation_changed",
    `the program behind ${bound.name} was replaced after the call was permitted; call it again`,
  );
}

async function runCall(
  prepared: PreparedCall,
  call: TurnCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<CallEnd> {
  const output = new CallOutput(prepared, turn, stages);
  try {
    const answer = await callPlugin({ prepared, call, turn, stages, output, signal });
    return await completeCall(prepared, answer, output, signal.aborted, async (attachments) => {
      const { attachMedia } = await import("./attach-media.ts");
      return attachMedia(attachments, prepared.bound.name, turn, stages.artifacts);
    });
  } catch (error) {
    return failCall(prepared, error, output, signal.aborted);
  }
}

interface Attempt {
  readonly prepared: PreparedCall;
  readonly call: TurnCall;
  readonly turn: CommittedTurn;
  readonly stages: DispatchStages;
  readonly output: CallOutput;
  readonly signal: AbortSignal;
}

/** One request; when the plugin's process and with it the token is lost, the call is prepared again once (E-060). */
async function callPlugin(attempt: Attempt): Promise<ToolCallResult> {
  const { prepared, output, signal } = attempt;
  try {
    return await sendCall(attempt);
  } catch (error) {
    if (prepared.token === null || signal.aborted || output.streamed) throw error;
    const { retrySafe } = prepared.bound.tool;
    const mayRepeat =
      isCookieError(error, "prepared_capability_lost") ||
      (retrySafe && isCookieError(error, "plugin_crashed"));
    if (!mayRepeat) throw error;
    return sendCall({ ...attempt, prepared: await prepareAgain(attempt) });
  }
}

/** What was approved must be what runs: a different identity is `operation_changed` (E-086). */
async function prepareAgain({
  prepared,
  call,
  turn,
  stages,
  signal,
}: Attempt): Promise<PreparedCall> {
  const again = await prepareCall(
    { toolCallId: prepared.toolCallId, part: call.part, toolSet: turn.toolSet, context: turn },
    stages,
    signal,
  );
  if (again.fingerprint === prepared.fingerprint) return again;
  discardToken(again, stages.plugins);
  throw new CookieError(
    "operation_changed",
    `what ${prepared.bound.name} would do changed after it was approved; call it again`,
  );
}

function sendCall(attempt: Attempt): Promise<ToolCallResult> {
  const { prepared, turn, stages, output, signal } = attempt;
  const { bound, args, token, toolCallId, resources } = prepared;
  const { stdin_argument: stdinArgument } = bound.tool.declaration;
  const stdin = typeof stdinArgument === "string" && args[stdinArgument] === true;
  const answer = stages.plugins.call(
    bound.plugin,
    {
      params: {
        tool: bound.name,
        session_id: turn.sessionId,
        run_id: turn.runId,
        invocation_id: toolCallId,
        arguments: args,
        cwd: turn.cwd,
        workspace_root: turn.workspaceRoot,
        resource: resources[0]?.label ?? null,
        prepared: token?.prepared ?? null,
        stdin,
        limits: { max_lines: stages.limits.maxLines, max_bytes: stages.limits.maxBytes },
      },
      timeoutMs: bound.tool.timeoutMs,
      generation: token?.generation ?? null,
      rootSessionId: turn.rootSessionId,
      declarationDigest: bound.tool.declarationDigest,
      approvedLabels: resources.flatMap(({ label }) => label ?? []),
      ...(turn.session && { session: turn.session }),
      ask: async (question, ended) => {
        const { askPermission } = await import("./ask-permission.ts");
        return askPermission(question, prepared, turn, stages, ended);
      },
      onProgress: (delta) => output.accept(delta),
    },
    signal,
  );
  if (stdin && !turn.stdinAttended) void endStdin(attempt, answer);
  return answer;
}

/** Nobody can type, so a reader must see the end of input as soon as the plugin has the call. */
async function endStdin({ prepared, stages }: Attempt, answer: Promise<unknown>): Promise<void> {
  const over = answer.then(
    () => true,
    () => true,
  );
  const { bound, toolCallId } = prepared;
  for (let delayMs = 5; ; delayMs = Math.min(delayMs * 2, 500)) {
    const accepted = await stages.plugins
      .stdin(bound.plugin, toolCallId, null, true)
      .catch(() => false);
    if (accepted || (await Promise.race([over, sleep(delayMs).then(() => false)]))) return;
  }
}
