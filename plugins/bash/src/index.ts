import { definePlugin, serve, ToolError } from "@cookie-agent/sdk/plugin";
import { type BashSettings, createBashTool } from "./bash.ts";
import { CallRegistry } from "./call-registry.ts";

const settings: BashSettings = { shell: undefined };
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
    tools: { bash: createBashTool(settings, registry) },
    start: ({ config }) => {
      const { shell } = config;
      if (shell !== undefined && typeof shell !== "string") {
        throw new ToolError(
          "execution_failed",
          '[plugins."builtin.bash".config] shell: expected a path',
        );
      }
      settings.shell = shell;
      process.once("exit", () => registry.killNow());
    },
    stop: () => registry.close(),
  }),
);
