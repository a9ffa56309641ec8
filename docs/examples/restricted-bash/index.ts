import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import path from "node:path";
import { definePlugin, defineTool, serve, ToolError } from "@cookie-agent/sdk/plugin";
import * as z from "zod";
import { splitWords } from "./split-words.ts";

/** The `config` table of the plugin's entry: the name that commands use, and the program that it stands for. */
const Config = z.strictObject({
  programs: z.record(z.string().regex(/^[A-Za-z0-9_.-]+$/), z.string().regex(/^\//)),
});

const programs = new Map<string, string>();
const running = new Set<ChildProcess>();

await serve(
  definePlugin({
    name: "restricted_bash",
    version: "1.0.0",
    configSchema: z.toJSONSchema(Config),
    tools: {
      // The name, the required argument, the action and how its label is read are those of the shipped tool.
      bash: defineTool({
        description:
          "Runs one program with its arguments, without a shell: no pipes, redirections, variables, wildcards or " +
          "further commands. Quote arguments with spaces. Which programs there are, a wrong call tells.",
        parameters: z.strictObject({
          command: z.string().min(1).describe("Program and arguments"),
        }),
        permissionName: "bash",
        prepare: { mode: "static", resources: [{ action: "bash", arg: "command", as: "command" }] },
        output: { mode: "named", streams: ["stdout", "stderr"] },
        async call({ args, cwd, workspaceRoot, signal, progress }) {
          const [program, programArgs] = choose(args.command, workspaceRoot);
          signal.throwIfAborted();
          const child = spawn(program, programArgs, {
            cwd,
            env: {},
            shell: false,
            detached: true,
            stdio: ["ignore", "pipe", "pipe"],
          });
          running.add(child);
          const stop = () => endGroup(child);
          child.once("exit", stop);
          signal.addEventListener("abort", stop, { once: true });
          try {
            const send = async (stream: string, output: AsyncIterable<Uint8Array>) => {
              for await (const bytes of output) await progress({ output: [{ stream, bytes }] });
            };
            await Promise.all([
              once(child, "close"),
              send("stdout", child.stdout),
              send("stderr", child.stderr),
            ]);
          } finally {
            signal.removeEventListener("abort", stop);
            stop();
            running.delete(child);
          }
          if (signal.aborted) throw new ToolError("cancelled", "the program was stopped");
          const status = child.exitCode;
          return { streamed: true, metadata: { status, success: status === 0 } };
        },
      }),
    },
    start({ config }) {
      for (const [name, program] of Object.entries(Config.parse(config).programs)) {
        programs.set(name, program);
      }
      process.once("exit", endAll);
    },
    stop: endAll,
  }),
);

function choose(command: string, workspace: string): [program: string, args: string[]] {
  const words = splitWords(command);
  const known = [...programs.keys()].join(", ");
  if ("refused" in words) {
    throw new ToolError(
      "invalid_arguments",
      `nothing was run: ${words.refused} cannot be used here; give one of ${known} and its arguments`,
    );
  }
  const [name = "", ...rest] = words;
  const program = programs.get(name);
  if (program === undefined) {
    throw new ToolError("invalid_arguments", `nothing was run: ${name} is not among ${known}`);
  }
  // What the model can write, it must not be able to run; nor where a link in the project leads to.
  if ([program, realpathSync(program)].some((file) => isInside(file, realpathSync(workspace)))) {
    throw new ToolError("execution_failed", `nothing was run: ${program} lies inside the project`);
  }
  return [program, rest];
}

function isInside(file: string, folder: string): boolean {
  const way = path.relative(
    folder,
    path.join(realpathSync(path.dirname(file)), path.basename(file)),
  );
  return way !== ".." && !way.startsWith(`..${path.sep}`);
}

function endAll(): void {
  for (const child of running) endGroup(child);
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing of the group is left.
  }
}
