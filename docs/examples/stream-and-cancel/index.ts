import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { definePlugin, defineTool, serve, ToolError } from "@cookie-agent/sdk/plugin";
import * as z from "zod";

/** How long a task that is stopped has to end by itself; the kernel waits 2 s for the call. */
const GRACE_MS = 1000;

/** The `config` table of the plugin's entry: each task is a program with its arguments. */
const Config = z.strictObject({ tasks: z.record(z.string(), z.array(z.string()).min(1)) });

const tasks = new Map<string, string[]>();
const running = new Set<ChildProcess>();

await serve(
  definePlugin({
    name: "tasks",
    version: "1.0.0",
    configSchema: z.toJSONSchema(Config),
    tools: {
      run_task: defineTool({
        description:
          "Runs one of the tasks that this project has set up, such as its tests, and returns what it prints.",
        parameters: z.strictObject({ task: z.string().describe("Name of the task") }),
        permissionName: "run_task",
        // A rule may name one task: `run_task test`.
        primaryResourceParam: "task",
        output: { mode: "named", streams: ["stdout", "stderr"] },
        async call({ args, cwd, signal, progress }) {
          const [program, ...programArgs] = tasks.get(args.task) ?? [];
          if (program === undefined) {
            const known = [...tasks.keys()].join(", ");
            throw new ToolError(
              "invalid_arguments",
              `there is no task ${args.task}, only ${known}`,
            );
          }
          signal.throwIfAborted();
          // Detached: it leads a process group, so that everything it starts can be ended with it.
          const child = spawn(program, programArgs, {
            cwd,
            detached: true,
            stdio: ["ignore", "pipe", "pipe"],
          });
          running.add(child);
          // What it leaves behind must neither live on nor keep its output open.
          child.once("exit", () => signalGroup(child, "SIGKILL"));
          const stop = () => stopTask(child);
          signal.addEventListener("abort", stop, { once: true });
          try {
            // Awaiting each piece slows the task down to what the kernel takes.
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
            signalGroup(child, "SIGKILL");
            running.delete(child);
          }
          if (signal.aborted) throw new ToolError("cancelled", "the task was stopped");
          const status = child.exitCode;
          return { streamed: true, isError: status !== 0, metadata: { status } };
        },
      }),
    },
    start({ config }) {
      for (const [name, command] of Object.entries(Config.parse(config).tasks)) {
        tasks.set(name, command);
      }
      process.once("exit", endAll);
    },
    stop: endAll,
  }),
);

function stopTask(child: ChildProcess): void {
  signalGroup(child, "SIGTERM");
  const timer = setTimeout(() => signalGroup(child, "SIGKILL"), GRACE_MS);
  child.once("exit", () => clearTimeout(timer));
}

function endAll(): void {
  for (const child of running) signalGroup(child, "SIGKILL");
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nothing of the group is left.
  }
}
