import { CookieError, type JsonObject, type StaticResource } from "@cookie-agent/sdk/protocol";
import type { DispatchContext } from "./call-context.ts";
import type { CallResource } from "./operation-identity.ts";
import { pathLabels } from "./path-labels.ts";
import { argumentText } from "./present-call.ts";
import type { BoundTool } from "./tool-slots.ts";

/**
 * Reads the resources of a statically prepared call from its arguments, as the manifest declares them (E-080). An
 * absent optional argument is a name-only check.
 */
export async function labelResources(
  bound: BoundTool,
  args: JsonObject,
  context: DispatchContext,
): Promise<CallResource[]> {
  const { prepare } = bound.tool;
  if (prepare.mode === "dynamic") return [];
  const labelled = await Promise.all(
    prepare.resources.map((resource) => labelResource(bound, resource, args, context)),
  );
  return labelled.flat();
}

async function labelResource(
  bound: BoundTool,
  resource: StaticResource,
  args: JsonObject,
  context: DispatchContext,
): Promise<CallResource[]> {
  const { action, lifetime = "restart_stable", boundary = "exact" } = resource;
  const { kind, labels } = await resolveLabels(bound, resource, args, context);
  const { permission_name: permission } = bound.tool.declaration;
  const pluginLabel = (value: string | null) =>
    value === null ? permission : `${permission} ${value}`;
  return labels.map((label) => ({
    action,
    label: action === "plugin" ? pluginLabel(label) : label,
    kind: action === "plugin" ? "text" : kind,
    lifetime,
    boundary,
    source: "primary_operation",
  }));
}

async function resolveLabels(
  bound: BoundTool,
  resource: StaticResource,
  args: JsonObject,
  context: DispatchContext,
): Promise<{ kind: CallResource["kind"]; labels: (string | null)[] }> {
  const value = readValue(bound, resource, args);
  if (value === null) return { kind: "text", labels: [null] };
  if (value === "") {
    throw new CookieError("invalid_arguments", `${resource.arg ?? bound.name} must not be empty`);
  }
  switch (resource.as ?? "text") {
    case "text":
      return { kind: "text", labels: [value] };
    case "command":
      return { kind: "command", labels: [value] };
    case "path":
      return { kind: "path", labels: await pathLabels(value, context) };
    case "session_relation":
    case "child_agent":
      throw new CookieError(
        "prepare_failed",
        `${bound.name} needs a tree of sessions, and this session has none to name`,
      );
  }
}

function readValue(bound: BoundTool, resource: StaticResource, args: JsonObject): string | null {
  if (resource.arg !== undefined) return argumentText(args, resource.arg);
  if (resource.const !== undefined) return resource.const;
  return resource.tool === true ? bound.name : null;
}
