import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { definePlugin, serve } from "@cookie-agent/sdk/plugin";

interface ToolMetrics {
  calls: number;
  /** Calls that did not complete: failed, cancelled or interrupted. */
  failures: number;
  totalMs: number;
  longestMs: number;
}

let file = "";
let metrics: { runs: Record<string, number>; tools: Record<string, ToolMetrics> } = {
  runs: {},
  tools: {},
};
/** Calls that have begun, by id. */
const open = new Map<string, { tool: string; startedMs: number }>();

async function load(): Promise<void> {
  try {
    metrics = JSON.parse(await readFile(file, "utf8")) as typeof metrics;
  } catch {
    // the first start
  }
}

/** Whole or not at all, so that a reader never meets half a file. */
async function save(): Promise<void> {
  await writeFile(`${file}.tmp`, `${JSON.stringify(metrics, null, 2)}\n`);
  await rename(`${file}.tmp`, file);
}

/** The metrics of a tool that was counted before, or new ones. */
function metricsOf(tool: string): ToolMetrics {
  const known = metrics.tools[tool] ?? { calls: 0, failures: 0, totalMs: 0, longestMs: 0 };
  metrics.tools[tool] = known;
  return known;
}

async function endRun(outcome: string): Promise<void> {
  metrics.runs[outcome] = (metrics.runs[outcome] ?? 0) + 1;
  await save();
}

await serve(
  definePlugin({
    name: "observer",
    version: "1.0.0",
    configSchema: {
      type: "object",
      properties: { file: { type: "string" } },
      additionalProperties: false,
    },
    async start({ config, paths }) {
      const { file: named } = config;
      file = typeof named === "string" ? named : join(paths.data, "metrics.json");
      await load();
    },
    // These names are the filter in the manifest: nothing else is ever sent to this process.
    events: {
      tool_call_started({ payload, timestamp }) {
        open.set(payload.tool_call_id, { tool: payload.tool, startedMs: Date.parse(timestamp) });
      },
      tool_call_terminated({ payload, timestamp }) {
        const call = open.get(payload.tool_call_id);
        // One that began before this process did.
        if (call === undefined) return;
        open.delete(payload.tool_call_id);
        const tool = metricsOf(call.tool);
        const tookMs = Date.parse(timestamp) - call.startedMs;
        tool.calls += 1;
        if (payload.outcome !== "completed") tool.failures += 1;
        tool.totalMs += tookMs;
        tool.longestMs = Math.max(tool.longestMs, tookMs);
      },
      async run_completed(_, { emit }) {
        await endRun("completed");
        await emit("observer.metrics", metrics.tools);
      },
      run_failed: () => endRun("failed"),
      run_cancelled: () => endRun("cancelled"),
      run_interrupted: () => endRun("interrupted"),
    },
    // Clients and other plugins may listen; nothing is added to the session.
    publish: { bus: true },
  }),
);
