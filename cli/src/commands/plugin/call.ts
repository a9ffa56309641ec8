import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TriedPlugin } from "@cookie-agent/kernel";
import type { CookieClient } from "@cookie-agent/sdk/client";
import { type EventPayloadOf, PluginsStatus, RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import { string as stringArg } from "@oclif/core/args";
import { integer, string } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { describeCallError } from "../../describe-session.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { parseAllowedTools } from "../../headless/allowed-tools.ts";
import { driveRun, type RunEnd } from "../../headless/drive-run.ts";
import { InterruptSignal } from "../../headless/interrupt-signal.ts";
import { openRunSession } from "../../headless/open-run-session.ts";
import { permissionFlags } from "../../headless/permission-flags.ts";
import { parsePermissionMode } from "../../headless/permission-mode.ts";
import { setUp } from "../../headless/set-up.ts";
import { withLocalKernel } from "../../open-kernel.ts";
import { LiveOutput } from "../../plugin/live-output.ts";
import { requireLoadable } from "../../plugin/require-loadable.ts";
import { requirePlugin } from "../../plugin/require-plugin.ts";
import { printableLines } from "../../printable.ts";
import { writeError } from "../../report-error.ts";
import { print, printError, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";

type Terminated = EventPayloadOf<"tool_call_terminated">;

export const callPlugin = defineCommand({
  summary: "Make one real call of a plugin's tool, without a model.",
  description: `The call goes the way of every call: arguments are checked, permissions decide, output is captured. What the tool prints shows on stderr while it runs, the result on stdout. No session is kept.

Exit codes: 0 completed, 1 the call failed, 2 wrong command line, 3 stopped by a permission, 4 cancelled, 5 could not start.`,
  examples: [
    `<%= config.bin %> plugin call echo echo '{"text":"hello"}' --allowed-tools plugin:echo`,
    `<%= config.bin %> plugin call echo echo '{"text":"hello"}' --path . --permission-mode yolo`,
  ],
  args: {
    plugin: stringArg({ description: "name of the plugin", required: true, ignoreStdin: true }),
    tool: stringArg({ description: "name of its tool", required: true, ignoreStdin: true }),
    arguments: stringArg({ description: "arguments, as JSON", default: "{}", ignoreStdin: true }),
  },
  flags: {
    path: string({ description: "folder of a plugin that is not configured" }),
    ...permissionFlags,
    "trust-workspace": switchFlag("trust this directory's own .cookie-agent, for this call only"),
    timeout: integer({ description: "most seconds", default: 600, min: 1, max: 2_147_483 }),
  },
  async run({ args, flags }): Promise<ExitCode> {
    const mode = parsePermissionMode(flags["permission-mode"]);
    const allowed = parseAllowedTools(flags["allowed-tools"] ?? []);
    const script = `call ${args.tool} ${JSON.stringify(parseArguments(args.arguments))}`;
    const tryPlugin =
      flags.path === undefined ? undefined : await triedPlugin(args.plugin, resolve(flags.path));
    const dataDir = await mkdtemp(join(tmpdir(), "cookie-call-"));
    const interrupt = new InterruptSignal({
      onStopping: () => printError("stopping; Ctrl-C again ends at once"),
      onExit: () => rmSync(dataDir, { recursive: true, force: true }),
    });
    try {
      return await withLocalKernel(
        {
          dataDir,
          trustWorkspace: flags["trust-workspace"],
          ...(tryPlugin === undefined ? {} : { tryPlugin }),
        },
        async ({ client }) => {
          await setUp(requireTool(client, args.plugin, args.tool));
          const session = await setUp(
            openRunSession(client, {
              model: "offline/script",
              agent: undefined,
              variant: undefined,
              resume: undefined,
              mode,
              allowed,
            }),
          );
          let terminated: Terminated | undefined;
          const live = new LiveOutput(process.stderr);
          const end = await driveRun(
            client,
            {
              ...session,
              input: script,
              maxTurns: 4,
              timeoutMs: flags.timeout * 1000,
              outputs: true,
              signal: interrupt.signal,
            },
            {
              onEvent: ({ payload }) => {
                if (payload.type === "tool_call_terminated") terminated ??= payload;
              },
              onOutput: (news) => {
                if (news.type === "output") live.take(news.stream, news.data);
              },
            },
          );
          live.end();
          if (terminated === undefined || end.exitCode === ExitCode.permission) {
            writeError(
              end.error ?? { code: "engine", message: "the call was not made" },
              flags.json,
            );
            return end.exitCode === ExitCode.success ? ExitCode.failure : end.exitCode;
          }
          return report(terminated, flags.json, end);
        },
      );
    } finally {
      interrupt.dispose();
      await rm(dataDir, { recursive: true, force: true });
    }
  },
});

function parseArguments(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw usageError(`the arguments are no JSON: ${text.slice(0, 80)}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw usageError("the arguments have to be a JSON object");
}

/** A folder stands for its plugin in every tool that it declares. */
async function triedPlugin(name: string, directory: string): Promise<TriedPlugin> {
  const found = await setUp(requireLoadable(directory, ExitCode.setup));
  if (found.name !== null && found.name !== name) {
    throw usageError(`the plugin in ${directory} is called ${found.name}, not ${name}`);
  }
  return { name, directory, tools: found.tools };
}

/** What cannot be called is said before anything runs, with the reason. */
async function requireTool(client: CookieClient, plugin: string, tool: string): Promise<void> {
  const { snapshot } = await client.request(RuntimeSnapshotGet, {});
  const { plugins } = await client.request(PluginsStatus, {});
  const status = requirePlugin(plugins, plugin);
  const owner = snapshot.tools.find(({ name }) => name === tool)?.plugin;
  if (owner === plugin) return;
  if (status.state === "failed") {
    const message = `plugin ${plugin} cannot be used: ${status.reason ?? "it failed"}`;
    throw new ExitError(ExitCode.setup, "plugin_unavailable", message);
  }
  if (owner !== undefined) {
    const message = `${tool} is served by ${owner}; [tools.implementations] ${tool} = "${plugin}" would change that`;
    throw new ExitError(ExitCode.setup, "plugin_unavailable", message);
  }
  const notes = status.diagnostics.map((note) => `; ${note}`).join("");
  throw usageError(
    `plugin ${plugin} has no tool ${tool}; it has ${status.tools.join(", ") || "none"}${notes}`,
  );
}

function report({ outcome, result, error }: Terminated, json: boolean, end: RunEnd): ExitCode {
  const { exitCode } = end;
  if (json) printJson({ outcome, result, error });
  else if (result !== null && result.output !== "") {
    const text = process.stdout.isTTY ? printableLines(result.output) : result.output;
    print(text.replace(/\n$/, ""));
  }
  if (exitCode === ExitCode.cancelled && end.error !== null && !json) {
    // Who stopped the run says more than that the call was stopped.
    writeError(end.error, json);
  } else if (error !== null && !json) {
    writeError({ code: error.code, message: `[${error.code}] ${describeCallError(error)}` }, json);
  }
  if (exitCode !== ExitCode.success) return exitCode;
  return outcome === "completed" ? ExitCode.success : ExitCode.failure;
}
