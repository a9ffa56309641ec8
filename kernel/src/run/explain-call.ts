import {
  CookieError,
  type OverlayRule,
  type PermissionExplanation,
  type PermissionMode,
  type PermissionRule,
  type RunId,
  type RunSelection,
  type SessionId,
  type ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { Policy } from "../permission/compile-rules.ts";
import type { RulePlaces } from "../permission/explain-label.ts";
import { explainResource } from "../permission/explain-resource.ts";
import { strictest } from "../permission/judge-command.ts";
import { offersTreeGrant, type TreeGrants } from "../permission/tree-grants.ts";
import { createId } from "../support/create-id.ts";
import { safeText } from "../support/safe-text.ts";
import type { PrepareStages } from "../tool/call-context.ts";
import { readLabels } from "../tool/decide-permission.ts";
import { discardToken, type PreparedCall, prepareCall } from "../tool/prepare-call.ts";
import { buildSlotTable, type ToolSet } from "../tool/tool-slots.ts";
import type { AdmissionFacts } from "./admit-run.ts";
import { resolveAgent } from "./resolve-agent.ts";

export interface CallQuestion {
  readonly facts: AdmissionFacts;
  readonly stages: PrepareStages;
  readonly sessionId: SessionId;
  readonly treeGrants: TreeGrants;
  readonly selection: RunSelection;
  /** The session's own rules, and those that are taken as if they came from flags. */
  readonly overlay: readonly OverlayRule[];
  readonly flags: readonly PermissionRule[];
  readonly mode: PermissionMode;
  readonly tool: string;
  readonly args: object;
}

/**
 * Prepares a call as a run of the selection would, and says which rules decide about it and what the mode makes of
 * that. The call is not made and leaves no record. Rejects as the preparation does.
 */
export async function explainCall(question: CallQuestion): Promise<PermissionExplanation> {
  const { facts, overlay, flags, mode, treeGrants } = question;
  const document = resolveAgent(facts, question.selection);
  const policy: Policy = {
    documentRules: document.permissions,
    overlayRules: [...overlay, ...flags.map((rule) => ({ ...rule, source: "flag" as const }))],
    workspaceRoot: facts.workspaceRoot,
  };
  const { path, ruleLines } = document.written ?? { path: "", ruleLines: [] };
  const places = ruleLines.map((line) => ({ path, line }));
  const { prepared, visible } = await prepare(question, policy);
  try {
    const { bound, operation, fingerprint } = prepared;
    const resources = await explainResources(prepared, policy, places);
    const effect = strictest(resources.map((resource) => resource.effect));
    await treeGrants.ready();
    const grant = treeGrants.loaded
      ? treeGrants.match({ operation, operation_fingerprint: fingerprint })
      : undefined;
    const granted = effect === "ask" ? grant : undefined;
    return {
      tool: bound.name,
      plugin: bound.plugin,
      tier: bound.tier,
      agent: document.id,
      visible,
      effect,
      resources,
      mode,
      ...outcomeOf(effect, mode, granted !== undefined),
      allow_tree_grant: offersTreeGrant({ operation, trigger: "permission_policy" }),
      ...(granted && { tree_grant_id: granted.grant_id }),
    };
  } finally {
    discardToken(prepared, question.stages.plugins);
  }
}

async function prepare(
  question: CallQuestion,
  policy: Policy,
): Promise<{ prepared: PreparedCall; visible: boolean }> {
  const { facts, stages, sessionId, treeGrants, tool, args } = question;
  const table = buildSlotTable({ plugins: facts.plugins(), tools: facts.config.tools });
  const frozen = table.freeze({ policy, toolCalling: true });
  const entries = table.entries();
  const signal = new AbortController().signal;
  const bound =
    entries.find(({ name }) => name === tool) ??
    (await frozen.resolve(tool, stages.plugins, signal));
  if (bound === undefined) {
    const names = entries.map(({ name }) => name).join(", ");
    throw new CookieError(
      "invalid_params",
      `there is no tool ${safeText(tool, 128)} here; there are ${names || "none"}`,
      { data: { field: "tool" } },
    );
  }
  const toolSet: ToolSet = { ...frozen, get: () => bound };
  const part = {
    type: "tool_call" as const,
    id: "explain",
    provider_item_id: null,
    name: bound.name,
    input: args,
    raw_input: null,
  };
  const context = {
    sessionId,
    rootSessionId: treeGrants.rootSessionId,
    runId: createId<RunId>(),
    cwd: facts.workspaceRoot,
    workspaceRoot: facts.workspaceRoot,
  };
  const call = { toolCallId: createId<ToolCallId>(), part, toolSet, context };
  const prepared = await prepareCall(call, stages, signal);
  return { prepared, visible: frozen.get(tool) !== undefined };
}

function explainResources({ resources }: PreparedCall, policy: Policy, places: RulePlaces) {
  return Promise.all(
    resources.map(async (resource) => {
      const { action, kind, label, lifetime } = resource;
      const judged = await readLabels(resource, policy);
      const { effect, labels, commandReason } = explainResource(policy, judged, places);
      return {
        action,
        kind,
        label,
        lifetime,
        effect,
        labels,
        ...(commandReason !== undefined && { command_reason: commandReason }),
      };
    }),
  );
}

/** What each mode makes of a call that the rules ask about (S 6.6). */
const MODE_OUTCOMES: Readonly<
  Record<PermissionMode, Pick<PermissionExplanation, "outcome" | "outcome_reason">>
> = {
  auto_approve: {
    outcome: "asks",
    outcome_reason:
      "the approval agent reviews it; what it leaves open a person decides, and where nobody can answer it is refused",
  },
  auto_approve_n: {
    outcome: "asks",
    outcome_reason: "the approval agent reviews it; what it leaves open is refused",
  },
  auto_approve_y: {
    outcome: "asks",
    outcome_reason: "the approval agent reviews it; what it leaves open runs",
  },
  ask: {
    outcome: "asks",
    outcome_reason: "a person decides; where nobody can answer it is refused",
  },
  yolo: { outcome: "runs", outcome_reason: "the mode yolo approves whatever is not denied" },
};

function outcomeOf(effect: string, mode: PermissionMode, isGranted: boolean) {
  if (effect === "deny") {
    return {
      outcome: "refused" as const,
      outcome_reason: "neither a mode nor a remembered approval lifts a deny",
    };
  }
  if (effect === "allow") {
    return { outcome: "runs" as const, outcome_reason: "the rules allow it; no mode is asked" };
  }
  if (isGranted) {
    return {
      outcome: "runs" as const,
      outcome_reason: "a person has approved exactly this for all sessions of the tree",
    };
  }
  return MODE_OUTCOMES[mode];
}
