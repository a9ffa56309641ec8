import * as z from "zod";
import {
  boundedText,
  controlFreeText,
  JsonObject,
  SnakeName,
  StreamName,
  ToolName,
} from "./scalars.ts";

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

/** What a rule says of a call. */
export const PermissionEffect = z.enum(["allow", "ask", "deny"]);
export type PermissionEffect = z.infer<typeof PermissionEffect>;

/** Whether calls of one turn may overlap: `parallel` calls run together, `exclusive` ones after them, one by one (E-087). */
export const Concurrency = z.enum(["exclusive", "parallel"]);
export type Concurrency = z.infer<typeof Concurrency>;

/** How long the thing behind a resource stays what it is; `process_local` never earns a tree grant (T-016). */
export const ResourceLifetime = z.enum(["process_local", "restart_stable"]);
export type ResourceLifetime = z.infer<typeof ResourceLifetime>;
/** How far a remembered approval of the resource may reach. */
export const ResourceBoundary = z.enum(["exact", "command_prefix", "delegation_tree"]);
export type ResourceBoundary = z.infer<typeof ResourceBoundary>;
/** Whether the tool exists for this resource, or touches it on the way. */
export const ResourceSource = z.enum(["primary_operation", "secondary_operation"]);
export type ResourceSource = z.infer<typeof ResourceSource>;

/** What a tool prints: one unnamed channel, or 1 to 8 named ones in rendering order (T 1.8). */
export const OutputDeclaration = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("single") }),
  z.strictObject({
    mode: z.literal("named"),
    /** In the order in which they are shown. */
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
    /** What a rule for this resource is filed under. */
    action: PermissionAction,
    /** An argument; absent in a call: a check of the name alone. */
    arg: boundedText(1, 128).optional(),
    /** Always this text. */
    const: controlFreeText(1, 4096).optional(),
    /** The name of the tool. */
    tool: z.literal(true).optional(),
    /** A check of the name alone. */
    none: z.literal(true).optional(),
    /** How the argument becomes labels. Default `text`: as it is. */
    as: LabelResolver.optional(),
    /** Default `restart_stable`. */
    lifetime: ResourceLifetime.optional(),
    /** Default `exact`. */
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
    /** What a call touches. */
    resources: z.array(StaticResource).min(1).max(8),
    /** Arguments whose equal values keep calls from overlapping. */
    serialize: z
      .array(
        z.strictObject({
          /** Name of the argument. */
          arg: boundedText(1, 128),
        }),
      )
      .max(4)
      .optional(),
  }),
  z.strictObject({
    mode: z.literal("dynamic"),
    /** Every action that a prepared resource may have. */
    actions: z.array(PermissionAction).min(1).max(9),
  }),
]);
export type PrepareDeclaration = z.infer<typeof PrepareDeclaration>;

/** What must hold in a session for a tool to be offered (E-037). */
export const AvailabilityPredicate = z.enum([
  "goal_open",
  "delegation_open",
  "messaging_enabled",
  "skills_usable",
]);
export type AvailabilityPredicate = z.infer<typeof AvailabilityPredicate>;

/** A tool as a manifest or a handshake declares it (E 6.1). Absent members mean the strict default (T-001). */
export const ToolDeclaration = z.strictObject({
  /** As models see it, in snake_case (E-070). */
  name: ToolName,
  /** Sent to the model unchanged. */
  description: boundedText(1, 16_384),
  /** JSON Schema 2020-12 with top level `type: object`. */
  parameters: JsonObject,
  /** What permission rules of action `plugin` name. */
  permission_name: SnakeName,
  /** Profiles in which the tool exists. Default: all, for a shipped tool `cookie` (E-201). */
  profile: z.array(controlFreeText(1, 64)).min(1).max(16).optional(),
  /** Short form of a static preparation with one resource of action `plugin`. */
  primary_resource_param: boundedText(1, 128).nullish(),
  /** Argument that is shown beside the title. Default: the primary resource. */
  display_argument: boundedText(1, 128).nullish(),
  /** Default: as `primary_resource_param` says, else a check of the name alone. */
  prepare: PrepareDeclaration.optional(),
  /** Default `exclusive`; `parallel` needs trust. */
  concurrency: Concurrency.optional(),
  /** Default one unnamed stream. */
  output: OutputDeclaration.optional(),
  /** `opt_out`: the model gets the whole text; needs a grant. */
  result_truncation: z.enum(["bounded", "opt_out"]).optional(),
  /** Null: no kernel timeout. Absent: the entry's `tool_timeout_ms`. */
  timeout_ms: z.int().min(1).nullish(),
  /** Boolean argument that opens standard input for the call when it is true. */
  stdin_argument: boundedText(1, 128).nullish(),
  /** Wants `plugin/tools/revalidate`. */
  revalidate: z.boolean().optional(),
  /** May be repeated once when its process dies before any output; needs trust (E-061). */
  retry_safe: z.boolean().optional(),
  /** All must hold when a run begins. */
  available_when: z.array(AvailabilityPredicate).max(8).optional(),
});
export type ToolDeclaration = z.infer<typeof ToolDeclaration>;
