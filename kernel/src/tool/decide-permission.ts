import { CookieError } from "@cookie-agent/sdk/protocol";
import { labelCommand } from "../permission/command-labels.ts";
import type { Policy } from "../permission/compile-rules.ts";
import {
  evaluatePolicy,
  type JudgedResource,
  needsParts,
  type PolicyVerdict,
} from "../permission/evaluate-policy.ts";
import type { GateOutcome } from "../permission/gate-outcome.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import type { DispatchContext } from "./call-context.ts";
import { classifierOf, type DispatchStages, MAX_ERROR_BYTES } from "./dispatch-stages.ts";
import type { CallResource } from "./operation-identity.ts";
import type { PreparedCall } from "./prepare-call.ts";

/** Judges one prepared call by the policy in force now and, where that asks, waits for whoever answers (S 6.7). */
export async function decidePermission(
  call: PreparedCall,
  context: DispatchContext,
  stages: Pick<DispatchStages, "gate" | "policy" | "plugins" | "log" | "classify">,
  signal: AbortSignal,
): Promise<GateOutcome> {
  const { bound, token } = call;
  const revalidate =
    bound.tool.revalidate && token
      ? () =>
          stages.plugins.revalidate(
            bound.plugin,
            { invocationId: call.toolCallId, ...token },
            signal,
          )
      : undefined;
  return stages.gate.decide(
    {
      runId: context.runId,
      toolCallId: call.toolCallId,
      tool: bound.name,
      title: call.title,
      detail: call.detail,
      fingerprint: call.fingerprint,
      operation: call.operation,
      verdict: await judge(call.resources, stages.policy()),
      trigger: "permission_policy",
      ...(revalidate && { revalidate }),
      ...classifierOf(stages, { tool: bound.name, parameters: call.args }),
    },
    signal,
    stages.log,
  );
}

/** What the policy says of all these resources together. */
export async function judge(
  resources: readonly CallResource[],
  policy: Policy,
): Promise<PolicyVerdict> {
  const judged = await Promise.all(resources.map((resource) => readLabels(resource, policy)));
  return evaluatePolicy(policy, judged);
}

/** The refusal as the model reads it (T-045); a change of what was prepared has codes of its own. */
export function refusal(denied: Extract<GateOutcome, { granted: false }>): CookieError {
  const { source, reason, feedback } = denied;
  if (reason === "operation_changed" || reason === "prepared_capability_lost") {
    return new CookieError(reason, "what the call was prepared for changed before it was approved");
  }
  const message = (words: string | null) =>
    JSON.stringify({ kind: "tool_denied", source, reason, feedback: words });
  let words = feedback;
  for (let room = MAX_ERROR_BYTES; Buffer.byteLength(message(words)) > MAX_ERROR_BYTES; ) {
    room -= 256;
    words = cutUtf8(words ?? "", room);
  }
  return new CookieError("permission_denied", message(words));
}

/** A command is only parsed where a rule can depend on its parts. */
export async function readLabels(resource: CallResource, policy: Policy): Promise<JudgedResource> {
  const { action, label, kind } = resource;
  if (kind !== "command" || label === null) return { action, label };
  if (!needsParts(policy, label, action))
    return { action, command: label, parsed: false, parts: [] };
  return { action, command: label, ...(await labelCommand(label)) };
}
