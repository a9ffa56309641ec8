import {
  CookieError,
  type Digest,
  isCookieError,
  type JsonObject,
  type ToolCallId,
  type ToolCallPart,
  type ToolPresentation,
} from "@cookie-agent/sdk/protocol";
import type { Prepared } from "../plugin/plugin-call.ts";
import type { ResolvedTool } from "../plugin/plugin-facts.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { cutUtf8, safeText } from "../support/safe-text.ts";
import type { DispatchContext, PrepareStages, ToolPlugins } from "./call-context.ts";
import { invalidArguments } from "./check-arguments.ts";
import { labelResources } from "./label-resources.ts";
import { type CallResource, identifyOperation, type Operation } from "./operation-identity.ts";
import { argumentText, presentCall } from "./present-call.ts";
import { argumentKeys, scopeKeys } from "./serialization-keys.ts";
import type { BoundTool, ToolSet } from "./tool-slots.ts";

const MAX_DETAIL_BYTES = 64 * 1024;

/** A call that may be judged and run; whoever drops it gives the token back with `discardToken`. */
export interface PreparedCall {
  readonly toolCallId: ToolCallId;
  readonly bound: BoundTool;
  /** Normalized; what identity and plugin see. */
  readonly args: JsonObject;
  /** At least one. */
  readonly resources: readonly CallResource[];
  readonly operation: Operation;
  readonly fingerprint: Digest;
  /** Scoped for the kernel-wide mutex. */
  readonly keys: readonly string[];
  /** What the plugin holds for this call; null when the kernel prepared it alone. */
  readonly token: PreparedToken | null;
  readonly presentation: ToolPresentation;
  /** Shown with an approval. */
  readonly title: string;
  readonly detail: string;
}

export interface PreparedToken {
  readonly prepared: string;
  readonly generation: number;
}

/** What is prepared: one call of the model's, in one run. */
export interface CallToPrepare {
  readonly toolCallId: ToolCallId;
  readonly part: ToolCallPart;
  readonly toolSet: ToolSet;
  readonly context: DispatchContext;
}

/**
 * Finds the tool, checks the arguments and learns what the call would touch; no side effect (T-013). Rejects with
 * the error that the model is to read.
 */
export async function prepareCall(
  call: CallToPrepare,
  stages: PrepareStages,
  signal: AbortSignal,
): Promise<PreparedCall> {
  const { part, toolSet } = call;
  const pinned =
    toolSet.get(part.name) ??
    (await toolSet.resolve(part.name, stages.plugins, signal)) ??
    refuseUnknown(part.name, toolSet);
  if (part.raw_input !== null) {
    throw invalidArguments(pinned.name, "the arguments are not valid JSON");
  }
  const args = await stages.checker.check(pinned.spec, part.input);
  if (signal.aborted) throw new CookieError("cancelled", "the call was cancelled");
  const bound = servedNow(pinned, requirePinned(pinned, stages));
  if (bound.tool.prepare.mode === "dynamic") {
    return prepareDynamic(bound, args, call, stages, signal);
  }
  const resources = await labelResources(bound, args, call.context);
  const keys = (bound.tool.prepare.serialize ?? []).flatMap(
    ({ arg }) => argumentText(args, arg) ?? [],
  );
  return describeCall(bound, args, call, {
    resources,
    keys: argumentKeys(bound.plugin, keys),
    token: null,
  });
}

/**
 * The plugin and declaration must still be those the run was admitted with (E-074, T-008). What the plugin withdrew is
 * `plugin_unavailable` (E-035, E-132), what became another tool or another plugin's is `operation_changed`. Yields the
 * tool as it is served now.
 */
export function requirePinned(
  bound: BoundTool,
  { plugins, ownerOf }: Pick<PrepareStages, "plugins" | "ownerOf">,
): ResolvedTool {
  const current = plugins.currentTool(bound.plugin, bound.name);
  if (current === undefined) {
    throw new CookieError(
      "plugin_unavailable",
      `${bound.name} cannot run: its plugin ${bound.plugin} is not available or does not offer it any more`,
    );
  }
  if (current.declarationDigest === bound.tool.declarationDigest) {
    const owner = ownerOf(bound.name);
    if (owner === undefined || owner === bound.plugin) return current;
  }
  throw new CookieError(
    "operation_changed",
    `${bound.name} is no longer the tool that this run was started with`,
  );
}

/** The program behind a tool may have been replaced since the run began; what is prepared is for the one of now. */
function servedNow(bound: BoundTool, { implementation }: ResolvedTool): BoundTool {
  if (implementation === undefined || implementation === bound.tool.implementation) return bound;
  return { ...bound, tool: { ...bound.tool, implementation } };
}

/** Gives back what a plugin holds for a call that will not run. */
export function discardToken(call: PreparedCall, plugins: Pick<ToolPlugins, "discard">): void {
  if (call.token) plugins.discard(call.bound.plugin, [call.token.prepared]);
}

function refuseUnknown(name: string, toolSet: ToolSet): never {
  const shown = safeText(name, 128);
  throw new CookieError(
    "execution_failed",
    toolSet.isKnown(name)
      ? `the tool ${shown} is not enabled for this session; use one of the tools you were given`
      : `the tool ${shown} is not published; use one of the tools you were given`,
  );
}

async function prepareDynamic(
  bound: BoundTool,
  args: JsonObject,
  call: CallToPrepare,
  stages: PrepareStages,
  signal: AbortSignal,
): Promise<PreparedCall> {
  const { sessionId, rootSessionId, runId, cwd, workspaceRoot, session } = call.context;
  const answer = await stages.plugins.prepare(
    bound.plugin,
    {
      tool: bound.name,
      session_id: sessionId,
      rootSessionId,
      ...(session && { session }),
      run_id: runId,
      invocation_id: call.toolCallId,
      arguments: args,
      cwd,
      workspace_root: workspaceRoot,
      declarationDigest: bound.tool.declarationDigest,
    },
    signal,
  );
  const token =
    answer.prepared === undefined
      ? null
      : { prepared: answer.prepared, generation: answer.generation };
  try {
    const normalized = answer.arguments ?? args;
    if (normalized !== args) await stages.checker.check(bound.spec, normalized);
    return describeCall(bound, normalized, call, {
      resources: claimedResources(bound, answer),
      keys: scopeKeys(bound.plugin, answer.serialize ?? []),
      token,
      answer,
    });
  } catch (error) {
    if (token) stages.plugins.discard(bound.plugin, [token.prepared]);
    if (!isCookieError(error, "invalid_arguments")) throw error;
    throw new CookieError(
      "prepare_failed",
      `${bound.plugin} prepared ${bound.name} with arguments that its own schema refuses`,
    );
  }
}

/** The plugin host has held them against the declaration; only defaults are missing (E-082). */
function claimedResources(bound: BoundTool, answer: Prepared): CallResource[] {
  const { permission_name: permission } = bound.tool.declaration;
  return answer.resources.map(({ action, label, lifetime, boundary, source }) => ({
    action,
    label: label ?? (action === "plugin" ? permission : null),
    kind: "text",
    lifetime: lifetime ?? "process_local",
    boundary: boundary ?? "exact",
    source: source ?? "primary_operation",
  }));
}

function describeCall(
  bound: BoundTool,
  args: JsonObject,
  call: CallToPrepare,
  facts: Pick<PreparedCall, "resources" | "keys" | "token"> & { readonly answer?: Prepared },
): PreparedCall {
  const { answer, ...held } = facts;
  const { displayArgument } = bound.tool;
  const argument =
    answer?.primary_argument ??
    (displayArgument === null ? null : argumentText(args, displayArgument));
  const presentation = presentCall(answer?.title ?? bound.name, argument);
  const shown = presentation.primary_argument;
  return {
    ...held,
    ...identifyOperation(bound, { args, resources: facts.resources }, call.context),
    toolCallId: call.toolCallId,
    bound,
    args,
    presentation,
    title: answer?.title ?? safeText(shown ? `${bound.name}: ${shown}` : bound.name, 1024),
    detail: answer?.detail ?? cutUtf8(canonicalJson(args), MAX_DETAIL_BYTES),
  };
}
