import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { Count, JsonObject, ToolName } from "./scalars.ts";

/** A prefix of tool names and a `*`: unlisted names that the plugin declares when they are called (E-133). */
export const ToolClaim = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,63}\*$/, { error: "expected the beginning of a tool name and a *" });
export type ToolClaim = z.infer<typeof ToolClaim>;

/**
 * The complete new list of a plugin's dynamic tools (E-130). Declarations are no part of the schema: each is judged on
 * its own, and one that is wrong does not sink the others (E-131).
 */
export const ToolsListChanged = request(
  "host/tools/list_changed",
  () =>
    fromPlugin({
      /** Declarations, at most 512. */
      tools: z.array(z.unknown()),
      /** At most 128. */
      claims: z.array(ToolClaim).optional(),
    }),
  () =>
    toPlugin({
      /** Counts the lists that this process put in force, from 1. */
      revision: Count,
      /** Names that are now this plugin's. */
      accepted: z.array(ToolName),
      /** Valid, but another plugin serves the name. */
      shadowed: z.array(
        z.object({
          tool: ToolName,
          /** The plugin that serves it. */
          by: z.string(),
        }),
      ),
      /** Those that cannot be used. */
      rejected: z.array(
        z.object({
          /** As given, cut and made safe; empty when there was none. */
          tool: z.string(),
          code: z.literal("invalid_declaration"),
          /** Names the member. */
          message: z.string(),
        }),
      ),
    }),
);

/** Asks for the declaration of a claimed name; null: there is no such tool (E-133). Answered within 5 s. */
export const ToolsResolve = request(
  "plugin/tools/resolve",
  () => toPlugin({ name: ToolName }),
  () =>
    fromPlugin({
      /** A declaration. */
      tool: JsonObject.nullable(),
    }),
);
