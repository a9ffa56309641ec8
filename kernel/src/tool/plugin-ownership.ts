import type { PluginStatus } from "@cookie-agent/sdk/protocol";
import type { SlotTable } from "./tool-slots.ts";

/**
 * Status records with the names that each plugin serves now, those it lost to another one and those it was chosen for
 * and cannot serve (E-044, E-071, E-073).
 */
export function tellOwnership(
  statuses: readonly PluginStatus[],
  table: Pick<SlotTable, "entries" | "unfit">,
): PluginStatus[] {
  const entries = table.entries();
  return statuses.map((status) => {
    const lost = entries.filter(({ shadowed }) => shadowed.includes(status.plugin));
    return {
      ...status,
      tools: entries.filter(({ plugin }) => plugin === status.plugin).map(({ name }) => name),
      shadowed: lost.map(({ name, plugin }) => ({ tool: name, by: plugin })),
      diagnostics: [
        ...status.diagnostics,
        ...lost.map(({ name, plugin }) => `the tool ${name} is shadowed by the plugin ${plugin}`),
        ...table.unfit
          .filter(({ plugin }) => plugin === status.plugin)
          .map(({ problem }) => problem),
      ],
    };
  });
}
