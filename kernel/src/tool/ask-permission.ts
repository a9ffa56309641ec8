import { CookieError, type PermissionAsk, type ResultInput } from "@cookie-agent/sdk/protocol";
import type { PermissionQuestion } from "../plugin/host-services.ts";
import { safeText } from "../support/safe-text.ts";
import { judge } from "./decide-permission.ts";
import { type CommittedTurn, classifierOf, type DispatchStages } from "./dispatch-stages.ts";
import { type CallResource, identifyOperation } from "./operation-identity.ts";
import type { PreparedCall } from "./prepare-call.ts";
import { holdKeys } from "./serialization-keys.ts";
import type { BoundTool } from "./tool-slots.ts";

/**
 * Answers a running call that asks for more than it was prepared for (E-120): the rules, the repetition guard, the mode
 * and, where that says so, a person. A refusal is a value.
 *
 * @param signal Aborts when the call ends or no longer waits; an open approval is then cancelled.
 */
export async function askPermission(
  question: PermissionQuestion,
  call: PreparedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<ResultInput<typeof PermissionAsk>> {
  const { bound } = call;
  const resources = question.resources.map(({ action, label }, index) =>
    askedResource(bound, action, label, index),
  );
  const { operation, fingerprint } = identifyOperation(bound, { args: call.args, resources }, turn);
  // People are asked one thing at a time, whatever runs in parallel.
  const log = stages.log.beside;
  const release = await holdKeys(stages.keys, [`ask:${turn.sessionId}`], signal);
  try {
    const outcome = await stages.gate.decide(
      {
        runId: turn.runId,
        toolCallId: call.toolCallId,
        tool: bound.name,
        title: safeText(`${bound.name}: ${question.reason}`, 1024),
        detail: resources.map(({ action, label }) => `${action} ${label}`).join("\n"),
        fingerprint,
        operation: {
          ...operation,
          resources: operation.resources.map((one) => ({ ...one, source: "model_request" })),
        },
        verdict: await judge(resources, stages.policy()),
        trigger: "model_tool_approval",
        ...classifierOf(stages, {
          tool: bound.name,
          parameters: { arguments: call.args, asks_for: question.resources },
        }),
      },
      signal,
      log,
    );
    // The plugin acts on what it is told, so that is on record first.
    await log.flush();
    if (outcome.granted) return { granted: true, source: outcome.source };
    if (outcome.escalated) stages.onEscalated?.();
    const { source, feedback } = outcome;
    return { granted: false, source, ...(feedback !== null && { feedback }) };
  } finally {
    release();
  }
}

/** Judged as the tool's own resources of that action are; a command by its parts too. */
function askedResource(
  { tool }: BoundTool,
  action: CallResource["action"],
  label: string,
  index: number,
): CallResource {
  const { prepare, declaration } = tool;
  const field = (member: string) => ({ data: { field: `resources.${index}.${member}` } });
  const declared =
    prepare.mode === "static" ? prepare.resources.map((one) => one.action) : prepare.actions;
  if (!declared.includes(action)) {
    throw new CookieError(
      "invalid_params",
      `the tool ${declaration.name} does not declare the action ${action}`,
      field("action"),
    );
  }
  const { permission_name: permission } = declaration;
  if (action === "plugin" && label !== permission && !label.startsWith(`${permission} `)) {
    throw new CookieError(
      "invalid_params",
      `a label of action plugin is ${permission}, or that and a space before more`,
      field("label"),
    );
  }
  const isCommand =
    prepare.mode === "static" &&
    prepare.resources.some((one) => one.action === action && one.as === "command");
  return {
    action,
    label,
    kind: isCommand ? "command" : "text",
    lifetime: "process_local",
    boundary: "exact",
    source: "secondary_operation",
  };
}
