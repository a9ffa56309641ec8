import * as z from "zod";
import { checkValue } from "../protocol/check-value.ts";
import { findDeclarationProblem } from "../protocol/declaration-problem.ts";
import { CookieError } from "../protocol/errors.ts";
import { Manifest, type PluginRuntime } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import { PLUGIN_PROTOCOL_VERSION } from "../protocol/version.ts";
import type { Plugin } from "./define-plugin.ts";
import type { ToolDefinition, ToolParameters } from "./define-tool.ts";
import { eventCapabilities } from "./event-handlers.ts";
import { declaredHooks } from "./hook-handlers.ts";

/**
 * The manifest of a plugin (E-030, E-031): the only source of its declarations, served and written alike (E-035, E-038).
 * Throws `invalid_declaration` naming the member.
 */
export function createManifest(plugin: Plugin, runtime: PluginRuntime): Manifest {
  const { definition } = plugin;
  const refuse = (member: string, problem: string, cause?: unknown) =>
    new CookieError("invalid_declaration", `plugin ${definition.name}: ${member}: ${problem}`, {
      data: { member },
      cause,
    });
  const entries = Object.entries(definition.tools ?? {});
  const tools = entries.map(([name, tool]) => {
    if (typeof tool?.call !== "function")
      throw refuse(`tools.${name}`, "expected a tool with `call`");
    try {
      return declareTool(name, tool);
    } catch (error) {
      const problem = error instanceof Error ? error.message : "cannot be described";
      throw refuse(`tools.${name}.parameters`, problem, error);
    }
  });
  const intercept = declaredHooks(definition.hooks, refuse);
  if (Object.hasOwn(definition.capabilities ?? {}, "intercept")) {
    throw refuse("capabilities.intercept", "follows from `hooks`; leave it out");
  }
  const checked = checkValue(
    Manifest,
    withoutUndefined({
      manifest: 1,
      name: definition.name,
      version: definition.version,
      protocol: [PLUGIN_PROTOCOL_VERSION],
      runtime: withoutUndefined(runtime),
      activation: definition.activation,
      prewarm: definition.prewarm,
      restart: definition.restart,
      max_in_flight: definition.maxInFlight,
      idle_ms: definition.idleMs,
      env: definition.env,
      capabilities: withoutUndefined({
        tools: tools.length > 0 ? true : undefined,
        ...definition.capabilities,
        ...eventCapabilities(definition, definition.capabilities, refuse),
        intercept: intercept.length > 0 ? intercept : undefined,
      }),
      tools,
      instructions: definition.instructions,
      provides: definition.services && Object.keys(definition.services),
      kernel_config: definition.kernelConfig,
      config_schema: definition.configSchema,
    }),
  );
  if (checked.ok) {
    for (const tool of checked.value.tools ?? []) {
      const found = findDeclarationProblem(tool);
      if (found !== undefined) throw refuse(`tools.${tool.name}.${found.member}`, found.problem);
    }
    return checked.value;
  }
  const { path = [] } = checked.problems[0] ?? {};
  const [section, index, ...rest] = path;
  const tool = section === "tools" ? entries[Number(index)]?.[0] : undefined;
  const member = tool === undefined ? path : [section, tool, ...rest];
  throw refuse(member.join(".") || "manifest", checked.problem);
}

/** One tool as the wire declares it. */
export function declareTool(name: string, tool: ToolDefinition): JsonObject {
  const { prepare } = tool;
  return withoutUndefined({
    name,
    description: tool.description,
    parameters: describeParameters(tool.parameters),
    permission_name: tool.permissionName,
    profile: tool.profile,
    primary_resource_param: tool.primaryResourceParam,
    display_argument: tool.displayArgument,
    prepare:
      prepare?.mode === "dynamic" ? { mode: prepare.mode, actions: prepare.actions } : prepare,
    concurrency: tool.concurrency,
    output: tool.output,
    result_truncation: tool.resultTruncation,
    timeout_ms: tool.timeoutMs,
    stdin_argument: tool.stdinArgument,
    revalidate: tool.revalidate === undefined ? undefined : true,
    retry_safe: tool.retrySafe,
    available_when: tool.availableWhen,
  });
}

function describeParameters(parameters: ToolParameters): JsonObject {
  if (typeof parameters !== "object" || parameters === null) {
    throw new Error("expected a zod object or a JSON Schema");
  }
  if (!isZodObject(parameters)) return parameters;
  const { $schema, ...schema } = z.toJSONSchema(parameters, {
    target: "draft-2020-12",
    io: "input",
    override: ({ jsonSchema }) => {
      // zod states the range of safe integers, which is only noise to a model.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  if (schema.type !== "object") throw new Error("the zod schema is not a z.object");
  return { ...schema, additionalProperties: false };
}

/** By shape, because an author's zod may be another copy than ours. */
export function isZodObject(parameters: ToolParameters): parameters is z.ZodObject {
  return "_zod" in parameters && "safeParse" in parameters;
}

function withoutUndefined(record: object): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
