import type {
  ApprovalRequest,
  Digest,
  JsonObject,
  PermissionAction,
  ResourceBoundary,
  ResourceLifetime,
  ResourceSource,
} from "@cookie-agent/sdk/protocol";
import { canonicalJson } from "../support/canonical-json.ts";
import { domainDigest, sha256Hex } from "../support/digest.ts";
import type { DispatchContext } from "./call-context.ts";
import type { BoundTool } from "./tool-slots.ts";

/** Something a call touches, under the label that rules are matched against. */
export interface CallResource {
  readonly action: PermissionAction;
  /** Null: a name-only check. */
  readonly label: string | null;
  /** How the label came about; a `command` is judged by its parts too. */
  readonly kind: "text" | "path" | "command";
  readonly lifetime: ResourceLifetime;
  readonly boundary: ResourceBoundary;
  readonly source: ResourceSource;
}

export type Operation = ApprovalRequest["operation"];

/** What a call is, for approvals, grants and the repetition guard: computed here, never claimed (E-085). */
export function identifyOperation(
  bound: BoundTool,
  call: { args: JsonObject; resources: readonly CallResource[] },
  context: DispatchContext,
): { operation: Operation; fingerprint: Digest } {
  const contextDigest = executionContextDigest(bound, context);
  const actions = [...new Set(call.resources.map(({ action }) => action))].sort();
  const operation: Operation = {
    normalized_arguments_digest: sha256Hex(canonicalJson(call.args)),
    capabilities: actions.map((action) => ({ action, operation: verbOf(bound, action) })),
    resources: call.resources.map((resource) => {
      const canonical = canonicalResource(resource);
      return {
        capability: verbOf(bound, resource.action),
        canonical,
        binding_digest: domainDigest("cookie.resource-binding", [contextDigest, canonical]),
        binding_lifetime: resource.lifetime,
        boundary: resource.boundary,
        source: resource.source,
      };
    }),
    execution_context_digest: contextDigest,
  };
  return { operation, fingerprint: fingerprintOf(bound.name, operation) };
}

/** The identity of a call that could not be prepared: equal calls still look equal. */
export function fallbackFingerprint(tool: string, input: unknown): Digest {
  return domainDigest("cookie.unprepared-operation", [tool, stableText(input)]);
}

function fingerprintOf(tool: string, operation: Operation): Digest {
  const resources = operation.resources.map(({ boundary: _, source: __, ...identity }) =>
    canonicalJson(identity),
  );
  return domainDigest("cookie.operation", [
    tool,
    operation.normalized_arguments_digest,
    canonicalJson(operation.capabilities),
    canonicalJson(resources.sort()),
    operation.execution_context_digest,
  ]);
}

interface ContextDigest {
  readonly place: Pick<DispatchContext, "cwd" | "workspaceRoot">;
  readonly digest: Digest;
}

/** The last one of each tool: a run asks for the same one with each call. */
const contextDigests = new WeakMap<BoundTool, ContextDigest>();

/** Holds plugin, declaration and what is started for it, so what is granted to one implementation never covers another (E-075). */
function executionContextDigest(bound: BoundTool, context: DispatchContext): Digest {
  const known = contextDigests.get(bound);
  const { cwd, workspaceRoot } = context;
  if (known?.place.cwd === cwd && known.place.workspaceRoot === workspaceRoot) return known.digest;
  const digest = domainDigest("cookie.execution-context", [
    bound.plugin,
    bound.tool.declarationDigest,
    bound.tool.implementation ?? "",
    cwd,
    workspaceRoot,
  ]);
  contextDigests.set(bound, { place: { cwd, workspaceRoot }, digest });
  return digest;
}

function canonicalResource({ kind, label }: CallResource): string {
  return label === null ? `name:${sha256Hex("")}` : `${kind}:${sha256Hex(label)}`;
}

function verbOf(bound: BoundTool, action: PermissionAction): string {
  return `${bound.name}:${action}`;
}

function stableText(input: unknown): string {
  try {
    return canonicalJson(input ?? null);
  } catch {
    // Nested too deeply to be written down; such calls only need to be told apart by their tool.
    return "";
  }
}
