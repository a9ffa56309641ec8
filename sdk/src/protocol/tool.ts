import * as z from "zod";
import { boundedText, controlFreeText, JsonObject, StreamName, ToolName } from "./scalars.ts";

/** The nine permission actions (S 6.1). */
export const PermissionAction = z.enum([
  "read",
  "write",
  "bash",
  "webfetch",
  "delegate",
  "message",
  "skill",
  "mcp",
  "plugin",
]);
export type PermissionAction = z.infer<typeof PermissionAction>;

export const PermissionEffect = z.enum(["allow", "ask", "deny"]);
export type PermissionEffect = z.infer<typeof PermissionEffect>;

export const Concurrency = z.enum(["exclusive", "parallel"]);
export type Concurrency = z.infer<typeof Concurrency>;

/** How long the thing behind a resource stays what it is; `process_local` never earns a tree grant (T-016). */
export const ResourceLifetime = z.enum(["process_local", "restart_stable"]);
export type ResourceLifetime = z.infer<typeof ResourceLifetime>;
export const ResourceBoundary = z.enum(["exact", "command_prefix", "delegation_tree"]);
export type ResourceBoundary = z.infer<typeof ResourceBoundary>;
export const ResourceSource = z.enum(["primary_operation", "secondary_operation"]);
export type ResourceSource = z.infer<typeof ResourceSource>;

/** What a tool prints: one unnamed channel, or 1 to 8 named ones in rendering order (T 1.8). */
export const OutputDeclaration = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("single") }),
  z.strictObject({
    mode: z.literal("named"),
    streams: z
      .array(StreamName)
      .min(1)
      .max(8)
      .refine((names) => new Set(names).size === names.length, {
        error: "stream names must be unique",
      }),
  }),
]);
export type OutputDeclaration = z.infer<typeof OutputDeclaration>;

/** Kernel resolvers that turn an argument into permission labels (E-080). */
export const LabelResolver = z.enum(["text", "path", "command", "session_relation", "child_agent"]);
export type LabelResolver = z.infer<typeof LabelResolver>;

/** One resource of a static preparation: its value comes from exactly one of `arg`, `const`, `tool`, `none`. */
export const StaticResource = z
  .strictObject({
    action: PermissionAction,
    arg: boundedText(1, 128).optional(),
    const: controlFreeText(1, 4096).optional(),
    tool: z.literal(true).optional(),
    none: z.literal(true).optional(),
    as: LabelResolver.optional(),
    lifetime: ResourceLifetime.optional(),
    boundary: ResourceBoundary.optional(),
  })
  .refine(
    (resource) =>
      [resource.arg, resource.const, resource.tool, resource.none].filter((v) => v !== undefined)
        .length === 1,
    { error: "expected exactly one of arg, const, tool, none" },
  );
export type StaticResource = z.infer<typeof StaticResource>;

/** How a call is prepared: by the kernel from the arguments alone, or by asking the plugin (E-080, E-082). */
export const PrepareDeclaration = z.discriminatedUnion("mode", [
  z.strictObject({
    mode: z.literal("static"),
    resources: z.array(StaticResource).min(1).max(8),
    serialize: z
      .array(z.strictObject({ arg: boundedText(1, 128) }))
      .max(4)
      .optional(),
  }),
  z.strictObject({
    mode: z.literal("dynamic"),
    actions: z.array(PermissionAction).min(1).max(9),
  }),
]);
export type PrepareDeclaration = z.infer<typeof PrepareDeclaration>;

export const AvailabilityPredicate = z.enum([
  "goal_open",
  "delegation_open",
  "messaging_enabled",
  "skills_usable",
]);
export type AvailabilityPredicate = z.infer<typeof AvailabilityPredicate>;

/** A tool as a manifest or a handshake declares it (E 6.1). Absent members mean the strict default (T-001). */
export const ToolDeclaration = z.strictObject({
  name: ToolName,
  /** Sent to the model unchanged. */
  description: boundedText(1, 16_384),
  /** JSON Schema 2020-12 with top level `type: object`. */
  parameters: JsonObject,
  permission_name: z
    .string()
    .regex(/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/)
    .max(64),
  profile: z.array(controlFreeText(1, 64)).min(1).max(16).optional(),
  primary_resource_param: boundedText(1, 128).nullish(),
  display_argument: boundedText(1, 128).nullish(),
  prepare: PrepareDeclaration.optional(),
  concurrency: Concurrency.optional(),
  output: OutputDeclaration.optional(),
  result_truncation: z.enum(["bounded", "opt_out"]).optional(),
  /** Null: no kernel timeout. Absent: the entry's `tool_timeout_ms`. */
  timeout_ms: z.int().min(1).nullish(),
  stdin_argument: boundedText(1, 128).nullish(),
  revalidate: z.boolean().optional(),
  retry_safe: z.boolean().optional(),
  available_when: z.array(AvailabilityPredicate).max(8).optional(),
});
export type ToolDeclaration = z.infer<typeof ToolDeclaration>;
