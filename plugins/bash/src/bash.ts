import { defineTool, ToolError, type ToolInvocation } from "@cookie-agent/sdk/plugin";
import * as z from "zod";
import type { CallRegistry } from "./call-registry.ts";
import { ShellRecord } from "./find-shell.ts";
import type { PipePool } from "./pipe-pool.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
/** The longest time a timer can wait for. */
const MAX_TIMEOUT_MS = 2_147_483_647;

const parameters = z.strictObject({
  command: z.string().regex(/\S/, { error: "must not be blank" }).describe("The command line"),
  timeout: z.int().min(0).optional().describe("Milliseconds; default 120000"),
  interactive: z
    .boolean()
    .optional()
    .describe("Opens standard input for the user to type into; default false: no input"),
});

type BashArgs = z.output<typeof parameters>;

/** What the tool knows of its surroundings once the plugin has started. */
export interface BashSettings {
  /** Absolute path of the shell; undefined: `bash` on `PATH`. */
  readonly shell: string | undefined;
  readonly pipes: PipePool;
}

/** The `bash` tool of one plugin process. */
export function createBashTool(settingsOf: () => BashSettings, registry: CallRegistry) {
  const shells = new ShellRecord();
  return defineTool({
    description: `Runs a command with bash ("bash --noprofile --norc -c") in the workspace root and returns stdout and stderr.

- Every call is a new shell: directory and variables do not carry over. Join what belongs together with && in one command.
- The exit status is in metadata.status. Long output is cut; the rest can be read as an artifact.
- Processes still running in the background when the command ends are stopped. "setsid" keeps one running, with its output in a file.
- There is no input unless "interactive" is true.
- Prefer read, write and edit to cat, echo and sed for files.`,
    parameters,
    permissionName: "bash",
    profile: ["cookie"],
    displayArgument: "command",
    prepare: {
      mode: "static",
      resources: [
        {
          action: "bash",
          arg: "command",
          as: "command",
          lifetime: "restart_stable",
          boundary: "exact",
        },
      ],
    },
    concurrency: "parallel",
    timeoutMs: null,
    stdinArgument: "interactive",
    output: { mode: "named", streams: ["stdout", "stderr"] },
    call: async (invocation: ToolInvocation<BashArgs>) => {
      const { args, signal } = invocation;
      if (args.command.includes("\0")) {
        throw new ToolError("invalid_arguments", "command holds a NUL character", {
          data: { field: "command" },
        });
      }
      const settings = settingsOf();
      const shell = shells.check(settings.shell, process.env["PATH"]);
      const result = await runCommand({
        shell: shell.path,
        command: args.command,
        cwd: invocation.cwd,
        marker: registry.markerOf(invocation.invocationId),
        timeoutMs: timeoutOf(args.timeout),
        stdin: args.interactive === true ? (invocation.stdin ?? noInput()) : null,
        signal,
        pipes: settings.pipes,
        send: (output) => invocation.progress({ output }),
        live: registry,
      });
      registry.noteEscaped(result.escaped.length > 0);
      return describeResult(result, shell.path);
    },
  });
}

function timeoutOf(timeout: number | undefined): number {
  return Math.min(timeout || DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
}

async function* noInput(): AsyncGenerator<Uint8Array, void, undefined> {}

function describeResult({ status, signal, ended, escaped }: CommandResult, shell: string) {
  const note = describeLeftovers(ended, escaped);
  const end = status === null ? `ended by ${signal ?? "a signal"}` : `exit status ${status}`;
  return {
    streamed: true as const,
    title: "Bash",
    display: note === undefined ? end : `${end}\n${note}`,
    metadata: {
      status,
      success: status === 0,
      shell,
      ...(note === undefined ? {} : { note }),
    },
  };
}

const MAX_LISTED_PIDS = 50;

function describeLeftovers(ended: number, escaped: readonly number[]): string | undefined {
  const notes: string[] = [];
  if (ended > 0) {
    const processes = ended === 1 ? "1 process" : `${ended} processes`;
    notes.push(`${processes} still running in the background ended with the command`);
  }
  if (escaped.length > 0) {
    const pids = escaped.slice(0, MAX_LISTED_PIDS).join(", ");
    const more = escaped.length > MAX_LISTED_PIDS ? ", …" : "";
    notes.push(`left running outside the process group: pid ${pids}${more}`);
  }
  return notes.length === 0 ? undefined : notes.join("; ");
}
