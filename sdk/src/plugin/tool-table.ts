import type { ToolsListChanged } from "../protocol/dynamic-tools.ts";
import type { ResultOf } from "../protocol/method.ts";
import type { ToolDefinition } from "./define-tool.ts";

/** Tools by name, each made with `defineTool`. */
export type ToolTable = Readonly<Record<string, ToolDefinition>>;

export interface SetToolsOptions {
  /** Beginnings of names, each with a `*` at its end, for which the kernel asks `resolveTool` (E-133). */
  readonly claims?: readonly string[];
}

/** What the kernel made of a list: which names are the plugin's now, which another plugin serves, which are wrong. */
export type ToolListOutcome = Omit<ResultOf<typeof ToolsListChanged>, "_meta">;
