import type { PluginStatus } from "@cookie-agent/sdk/protocol";
import { printable } from "../printable.ts";

const STARTS = {
  tool: "at the first call",
  session: "with the first run of a session",
  startup: "with the kernel",
} satisfies Record<PluginStatus["activation"], string>;

/** What is known of one plugin, a line for each fact. */
export function describeStatus(status: PluginStatus): string {
  const { plugin, version, tier, source, state, reason, tools, activation, shadowed } = status;
  const facts: [string, string][] = [
    ["state", reason === null ? state : `${state}: ${reason}`],
    ["version", version ?? "-"],
    ["tier", `${tier}, ${source}`],
    ["starts", STARTS[activation]],
    ["tools", tools.length === 0 ? "none" : tools.join(", ")],
    ...shadowed.map(({ tool, by }): [string, string] => ["shadowed", `${tool}, owned by ${by}`]),
    ...status.diagnostics.map((text): [string, string] => ["note", text]),
  ];
  const lines = facts.map(([name, text]) => printable(`  ${name.padEnd(9)} ${text}`));
  return [printable(plugin), ...lines].join("\n");
}
