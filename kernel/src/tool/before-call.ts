import { CookieError, isCookieError, type JsonObject } from "@cookie-agent/sdk/protocol";
import type { HookChain, HookStep } from "../plugin/hook-chain.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { safeText } from "../support/safe-text.ts";
import {
  type CommittedTurn,
  type DispatchStages,
  siteOf,
  type TurnCall,
} from "./dispatch-stages.ts";
import { discardToken, type PreparedCall, prepareCall } from "./prepare-call.ts";

/** A call as its hooks leave it: what runs, and what would be prepared again. */
export interface HookedCall {
  readonly prepared: PreparedCall;
  readonly call: TurnCall;
}

/**
 * Shows one permitted call to the plugins that want to see it before it runs. Rejects with `operation_blocked` when one
 * blocks it, with `operation_changed` when one changes it to something that was not approved (E-164). Takes over the
 * call's token: whatever does not come back is given back to its plugin.
 */
export async function passBeforeCall(
  hooks: HookChain,
  permitted: HookedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<HookedCall> {
  let current = permitted;
  try {
    const outcome = await hooks.run(
      "tool_before_call",
      siteOf(turn, permitted.prepared.toolCallId),
      {
        state: permitted,
        facts: ({ prepared }) => ({
          tool: prepared.bound.name,
          arguments: prepared.args,
          permission_name: prepared.bound.tool.declaration.permission_name,
          resource: prepared.resources[0]?.label ?? null,
        }),
        take: async (state, answer, plugin): Promise<HookStep<HookedCall>> => {
          if (answer.action === "block") {
            return { kind: "block", reason: answer.message_to_model ?? answer.reason };
          }
          const { modified_arguments: args } = answer;
          if (args === undefined || isSame(args, state.prepared.args)) return { kind: "go", state };
          const step = await modify(state, args, plugin, { turn, stages, signal });
          if (step.kind === "go") {
            discardToken(current.prepared, stages.plugins);
            current = step.state;
          }
          return step;
        },
      },
      signal,
    );
    if (outcome.kind === "passed") return outcome.state;
    throw outcome.error ?? new CookieError("operation_blocked", outcome.reason);
  } catch (error) {
    discardToken(current.prepared, stages.plugins);
    throw error;
  }
}

async function modify(
  { prepared, call }: HookedCall,
  args: JsonObject,
  plugin: string,
  within: { turn: CommittedTurn; stages: DispatchStages; signal: AbortSignal },
): Promise<HookStep<HookedCall>> {
  const { turn, stages, signal } = within;
  const part = { ...call.part, input: args, raw_input: null };
  const { name } = prepared.bound;
  try {
    const again = await prepareCall(
      { toolCallId: prepared.toolCallId, part, toolSet: turn.toolSet, context: turn },
      stages,
      signal,
    );
    if (isSameTarget(again, prepared)) {
      return { kind: "go", state: { prepared: again, call: { ...call, part } } };
    }
    discardToken(again, stages.plugins);
    return refuse(`the plugin ${plugin} changed ${name} to something that was not approved`);
  } catch (error) {
    if (signal.aborted || !isCookieError(error)) throw error;
    return refuse(
      `the plugin ${plugin} changed the arguments of ${name} so that it cannot run: ${safeText(error.message, 512)}`,
    );
  }
}

function refuse(message: string): HookStep<HookedCall> {
  return { kind: "fail", error: new CookieError("operation_changed", message) };
}

/** The same actions on the same resources under the same labels, in their order: what is moved is not where to. */
function isSameTarget(one: PreparedCall, other: PreparedCall): boolean {
  const targetOf = ({ operation, resources }: PreparedCall) => [
    operation.capabilities,
    operation.resources,
    resources.map(({ action, label, kind }) => [action, kind, label]),
  ];
  return isSame(targetOf(one), targetOf(other));
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other);
}
