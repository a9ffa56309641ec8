import { spawn } from "node:child_process";
import { definePlugin, defineTool, serve, ToolError } from "@cookie-agent/sdk/plugin";
import * as z from "zod";

/** Programs that may be run; from the entry's `config.programs`. */
let programs: readonly string[] = [];

/** The words of a plain command. What only a shell could read is refused, so nothing can hide in it. */
function wordsOf(command: string): [program: string, ...args: string[]] {
  const meaning = /[^\w\s./:=@%+,~^-]/.exec(command)?.[0];
  if (meaning !== undefined) {
    throw new ToolError("invalid_arguments", `only plain words are taken here, no ${meaning}`);
  }
  const [program = "", ...args] = command.trim().split(/\s+/);
  if (programs.includes(program)) return [program, ...args];
  const known = programs.length === 0 ? "none" : programs.join(", ");
  throw new ToolError("invalid_arguments", `${program} may not be run here; allowed: ${known}`);
}

await serve(
  definePlugin({
    name: "restricted_bash",
    version: "1.0.0",
    configSchema: {
      type: "object",
      properties: { programs: { type: "array", items: { type: "string" } } },
      additionalProperties: false,
    },
    start({ config }) {
      programs = z.array(z.string()).parse(config["programs"] ?? []);
    },
    tools: {
      bash: defineTool({
        description: "Runs one program of a short list, without a shell, in the workspace root.",
        // The contract of the slot: these required arguments, this action, this label.
        parameters: z.strictObject({ command: z.string().describe("Program and arguments") }),
        permissionName: "bash",
        prepare: {
          mode: "static",
          resources: [{ action: "bash", arg: "command", as: "command" }],
        },
        output: { mode: "named", streams: ["stdout", "stderr"] },
        async call({ args, cwd, progress, signal }) {
          const [program, ...rest] = wordsOf(args.command);
          const child = spawn(program, rest, { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
          const ended = new Promise<number | null>((resolve, reject) => {
            child.once("error", reject);
            child.once("close", resolve);
          });
          const [status] = await Promise.all([
            ended,
            forward(child.stdout, (bytes) => progress({ output: [{ stream: "stdout", bytes }] })),
            forward(child.stderr, (bytes) => progress({ output: [{ stream: "stderr", bytes }] })),
          ]);
          return { streamed: true, metadata: { status } };
        },
      }),
    },
  }),
);

async function forward(
  source: AsyncIterable<Uint8Array>,
  send: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  for await (const bytes of source) await send(bytes);
}
