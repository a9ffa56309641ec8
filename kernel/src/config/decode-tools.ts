import type { ToolsConfig } from "./config.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import { nonEmpty, toolName } from "./text-rules.ts";

export const DEFAULT_PROFILE = "cookie";

const toolPattern: TextRule = (text) =>
  /^[A-Za-z0-9_*-]{1,64}$/.test(text) ? undefined : "expected a tool name or a pattern with *";

/** Shape and contradictions; whether the names exist is known only after merging. */
export function decodeTools(value: unknown, table: string): ToolsConfig {
  const known = ["profile", "include", "exclude", "implementations"];
  const reader = new TableReader(value, [table], known);
  const include = uniquePatterns(reader, "include");
  const exclude = uniquePatterns(reader, "exclude");
  for (const [index, pattern] of exclude.entries()) {
    if (pattern.includes("*") || !include.includes(pattern)) continue;
    throw reader.fail("conflict", ["exclude", index], "is also in include", "remove one of them");
  }
  const implementations = new Map<string, string>();
  const mapping = reader.table("implementations");
  for (const tool of mapping?.keys() ?? []) {
    const problem = toolName(tool);
    if (problem !== undefined)
      throw reader.fail("invalid_value", ["implementations", tool], problem);
    const plugin = mapping?.string(tool, nonEmpty);
    if (plugin !== undefined) implementations.set(tool, plugin);
  }
  return {
    profile: reader.string("profile", nonEmpty) ?? DEFAULT_PROFILE,
    include,
    exclude,
    implementations,
  };
}

function uniquePatterns(reader: TableReader, key: string): string[] {
  const patterns = reader.strings(key, toolPattern) ?? [];
  for (const [index, pattern] of patterns.entries()) {
    if (patterns.indexOf(pattern) !== index) {
      throw reader.fail("invalid_value", [key, index], "stands there twice", "remove one of them");
    }
  }
  return patterns;
}
