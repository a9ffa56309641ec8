import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable } from "node:stream";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { feedStdin } from "./feed-stdin.ts";
import { OutputPump, type SendOutput } from "./output-pump.ts";
import type { OutputPipe, PipePool } from "./pipe-pool.ts";
import { PipeReader } from "./pipe-reader.ts";
import { ProcessGroup } from "./process-group.ts";
import { MARKER } from "./process-scan.ts";

export interface CommandRequest {
  /** Real path of the shell. */
  readonly shell: string;
  readonly command: string;
  readonly cwd: string;
  /** Value of the marker variable: unique to this call. */
  readonly marker: string;
  readonly timeoutMs: number;
  /** Null: the null device. */
  readonly stdin: AsyncIterable<Uint8Array> | null;
  readonly signal: AbortSignal;
  readonly send: SendOutput;
  readonly pipes: PipePool;
  /** Told when the group exists and when nothing of it can be left to end. */
  readonly live: { add(group: ProcessGroup): void; delete(group: ProcessGroup): void };
}

export interface CommandResult {
  /** Null when a signal ended the shell. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Processes that were still in the group and were ended. */
  readonly ended: number;
  /** Processes that left the group and live on. */
  readonly escaped: readonly number[];
}

/** How long output may take to be sent when the command has failed already. */
const LAST_OUTPUT_MS = 1000;

/**
 * Runs one command to its end: the shell's exit, the timeout or the cancel (T 2.4).
 *
 * Whichever comes, its processes are dealt with and its output is sent before this settles. A timeout rejects with
 * `timeout`, a cancel with `cancelled`.
 */
export async function runCommand(request: CommandRequest): Promise<CommandResult> {
  if (request.signal.aborted) throw cancelled();
  const { child, pid, exit, stdout, stderr } = await startShell(request);
  const group = new ProcessGroup(pid, request.marker);
  request.live.add(group);
  const stopFeeding = feedStdin(child.stdin, request.stdin);
  const pump = new OutputPump({ stdout, stderr }, request.send);
  const finish = async (): Promise<CommandResult> => {
    const { status, signal } = await exit;
    stopFeeding();
    const ended = await group.endMembers();
    await pump.drain();
    return { status, signal, ended, escaped: group.escaped() };
  };
  try {
    return await beforeDeadline(finish(), request);
  } catch (error) {
    stopFeeding();
    await group.endAll();
    await pump.drainWithin(LAST_OUTPUT_MS);
    throw error;
  } finally {
    request.live.delete(group);
  }
}

interface StartedShell {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exit: Promise<Exit>;
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
}

async function startShell(request: CommandRequest): Promise<StartedShell> {
  const { shell, command, cwd, marker, stdin, pipes } = request;
  const [out, err] = [await pipes.take(), await pipes.take()];
  try {
    const child = spawn(shell, ["--noprofile", "--norc", "-c", command], {
      cwd,
      env: commandEnvironment(process.env, marker),
      detached: true,
      stdio: [stdin === null ? "ignore" : "pipe", out?.childEnd ?? "pipe", err?.childEnd ?? "pipe"],
    });
    const exit = exitOf(child, request);
    const pid = child.pid ?? (await failedStart(exit));
    const [stdout, stderr] = [outputOf(out, child.stdout), outputOf(err, child.stderr)];
    return { child, pid, exit, stdout, stderr };
  } catch (error) {
    out?.output.close();
    err?.output.close();
    throw error instanceof ToolError ? error : startFailed(error, request);
  } finally {
    out?.release();
    err?.release();
  }
}

function outputOf(pipe: OutputPipe | undefined, own: Readable | null): PipeReader {
  if (pipe !== undefined) return pipe.output;
  if (own === null) throw new ToolError("internal", "the shell has no output pipe");
  return PipeReader.ofStream(own);
}

/** What a command inherits: everything but what makes bash run a file first and what concerns only this process. */
function commandEnvironment(inherited: NodeJS.ProcessEnv, marker: string): NodeJS.ProcessEnv {
  const { BASH_ENV, ENV, COOKIE_PLUGIN_PROTOCOL, ...environment } = inherited;
  return { ...environment, [MARKER]: marker };
}

interface Exit {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Settles on `exit`, not on `close`: a process that keeps the pipes open must not hold the call (B049). */
function exitOf(child: ChildProcess, request: CommandRequest): Promise<Exit> {
  const exit = new Promise<Exit>((resolve, reject) => {
    child.once("exit", (status, signal) => resolve({ status, signal }));
    child.once("error", (error) => reject(startFailed(error, request)));
  });
  // A failed start is reported to whoever awaits it next.
  exit.catch(() => undefined);
  return exit;
}

/** A shell without a process id: its exit tells why. */
async function failedStart(exit: Promise<Exit>): Promise<never> {
  await exit;
  throw new ToolError("execution_failed", "the shell did not start");
}

/** The command's own ending, unless the timeout or the cancel comes first. */
function beforeDeadline<T>(ending: Promise<T>, request: CommandRequest): Promise<T> {
  const { signal, timeoutMs } = request;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(cancelled());
    const timer = setTimeout(() => reject(timedOut(timeoutMs)), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    // It may have been aborted while the shell was starting, and then says so no more.
    if (signal.aborted) onAbort();
    ending.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    });
  });
}

function startFailed(
  error: unknown,
  { shell, command, cwd }: Pick<CommandRequest, "shell" | "command" | "cwd">,
): ToolError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  if (code === "E2BIG") {
    return new ToolError(
      "execution_failed",
      `the command is too long for this system (${Buffer.byteLength(command)} bytes); write it to a file and run that`,
      { cause: error },
    );
  }
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true) {
    return new ToolError("execution_failed", `the working directory ${cwd} does not exist`, {
      cause: error,
    });
  }
  return new ToolError("execution_failed", `${shell} could not be started (${code})`, {
    cause: error,
  });
}

function timedOut(timeoutMs: number): ToolError {
  return new ToolError(
    "timeout",
    `the command did not end within ${timeoutMs} ms and was stopped; give a larger timeout, or let long work run apart with its output in a file`,
  );
}

function cancelled(): ToolError {
  return new ToolError("cancelled", "the command was cancelled");
}
