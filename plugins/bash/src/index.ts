import { definePlugin, serve, ToolError } from "@cookie-agent/sdk/plugin";
import { type BashSettings, createBashTool } from "./bash.ts";
import { CallRegistry } from "./call-registry.ts";
import { PipePool } from "./pipe-pool.ts";

/** The first calls come first. */
const SWEEP_DELAY_MS = 500;

let settings: BashSettings | undefined;
const registry = new CallRegistry();

await serve(
  definePlugin({
    name: "builtin.bash",
    version: "0.1.0",
    group: "exec",
    env: { inherit: "*" },
    // A stop ends what earlier calls left running, so only the kernel's own end may cause one.
    idleMs: 0,
    configSchema: {
      type: "object",
      properties: { shell: { type: "string" } },
      additionalProperties: false,
    },
    tools: { bash: createBashTool(startedSettings, registry) },
    start: ({ config, paths }) => {
      const { shell } = config;
      if (shell !== undefined && typeof shell !== "string") {
        throw new ToolError(
          "execution_failed",
          '[plugins."builtin.bash".config] shell: expected a path',
        );
      }
      const pipes = new PipePool(paths.scratch);
      // The call that started this plugin is on its way.
      void pipes.fill();
      settings = { shell, pipes };
      process.once("exit", () => registry.killNow());
      setTimeout(() => registry.endAbandoned(), SWEEP_DELAY_MS).unref();
    },
    stop: async () => {
      await registry.close();
      await settings?.pipes.close();
    },
  }),
);

function startedSettings(): BashSettings {
  if (settings === undefined) throw new ToolError("not_initialized", "the plugin has not started");
  return settings;
}
