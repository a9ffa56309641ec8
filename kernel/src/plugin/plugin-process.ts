import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { type BadLine, createLineTransport, type LineTransport } from "@cookie-agent/sdk/rpc";
import { createDeferred } from "../support/deferred.ts";
import type { Logger } from "../support/logger.ts";
import { safeText } from "../support/safe-text.ts";
import { BadLineCount } from "./bad-line-count.ts";
import { StderrLog } from "./stderr-log.ts";

/** A background child that holds a pipe may keep it open this long after its leader has gone. */
const DRAIN_MS = 300;
/** On a busy machine a process is reaped well after its pipes have closed; ended sooner it could not tell its status. */
const LEAVE_MS = 2_000;

export interface PluginProcessOptions {
  /** Plugin name, or the group of a shared host; tags log lines. */
  readonly label: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly badLines: { readonly count: number; readonly windowMs: number };
  readonly logger: Logger;
}

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why the kernel ended it; null when it went by itself. */
  readonly cause: string | null;
  /** Last lines of its stderr. */
  readonly stderrTail: readonly string[];
}

/**
 * One child process that leads its own group (E-047). The owner ends it with `stop` or `kill`; whatever ends it, the
 * rest of the group goes with it and `exit` resolves.
 */
export class PluginProcess {
  readonly transport: LineTransport;
  /** Resolves when the process is reaped and its pipes are closed; never rejects. */
  readonly exit: Promise<ProcessExit>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #badLines: BadLineCount;
  readonly #options: PluginProcessOptions;
  #ended = false;
  #cause: string | null = null;

  /** Starts the child at once; a failure to start is an `exit` with a cause. */
  constructor(options: PluginProcessOptions) {
    this.#options = options;
    this.#badLines = new BadLineCount(options.badLines);
    this.#child = spawn(options.command, [...options.args], {
      cwd: options.cwd,
      env: options.env,
      detached: process.platform !== "win32",
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    // Heard from now on: an unheard error event would end the kernel.
    this.#child.on("error", () => undefined);
    if (this.#child.stdout === undefined) {
      throw new CookieError("plugin_unavailable", "too many files are open to start a process");
    }
    const stderr = new StderrLog({
      input: this.#child.stderr,
      write: (line) => options.logger.log("info", line, { plugin: options.label }),
    });
    this.transport = createLineTransport({
      input: this.#child.stdout,
      output: this.#child.stdin,
      onBadLine: (bad) => this.#onBadLine(bad),
      raw: true,
    });
    this.#child.stdin.on("error", () => undefined);
    this.exit = this.#watch(stderr);
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Ends the whole group at once; `cause` is told to those who wait for it. */
  kill(cause: string): void {
    if (this.#ended) return;
    this.#cause ??= cause;
    this.#killGroup();
  }

  /** The peer closed its output: it has a moment to leave by itself, so that its own exit status is told. */
  expectExit(): void {
    if (this.#ended) return;
    const timer = setTimeout(() => this.kill("closed its stdout"), LEAVE_MS);
    void this.exit.then(() => clearTimeout(timer));
  }

  /** Closes stdin, waits `graceMs`, kills what is left and waits at most `reapMs` for the end (E-065). */
  async stop(graceMs: number, reapMs: number): Promise<void> {
    if (!this.#ended) this.#cause ??= "stopped by the kernel";
    this.#child.stdin.end();
    if (await settledWithin(this.exit, graceMs)) return;
    this.#killGroup();
    await settledWithin(this.exit, reapMs);
  }

  #watch(stderr: StderrLog): Promise<ProcessExit> {
    const { promise, resolve } = createDeferred<ProcessExit>();
    const child = this.#child;
    let status: Pick<ProcessExit, "code" | "signal"> = { code: null, signal: null };
    let drain: NodeJS.Timeout | undefined;
    const finish = () => {
      clearTimeout(drain);
      resolve({ ...status, cause: this.#cause, stderrTail: stderr.tail });
    };
    const leave = () => {
      this.#ended = true;
      this.#killGroup();
      drain = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, DRAIN_MS);
    };
    child.once("error", (error) => {
      if (child.pid !== undefined) return;
      const code = "code" in error && typeof error.code === "string" ? error.code : error.message;
      const missing =
        code === "ENOENT" ? "; its program is not there, or the interpreter in its first line" : "";
      this.#cause = `cannot be started: ${safeText(code, 256)}${missing}`;
      this.#ended = true;
      child.stdin.destroy();
      finish();
    });
    child.once("exit", (code, signal) => {
      status = { code, signal };
      leave();
    });
    child.once("close", finish);
    return promise;
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    if (process.platform === "win32") {
      spawn("taskkill", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore", windowsHide: true })
        .on("error", () => undefined)
        .unref();
      return;
    }
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Nobody of the group is left.
    }
  }

  #onBadLine({ reason, head, final }: BadLine): void {
    const { label, logger } = this.#options;
    logger.log("warn", `skipped a line on stdout (${reason})`, {
      plugin: label,
      head: safeText(head, 800),
    });
    if (final) this.kill(`wrote a line after which nothing can be read (${reason})`);
    else if (this.#badLines.add(performance.now()))
      this.kill("wrote too many bad lines to its stdout");
  }
}

/** The error of everyone who waited for a process that ended (B145). */
export function crashError(plugin: string, exit: ProcessExit): CookieError {
  const how =
    exit.cause ?? (exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`);
  const tail = exit.stderrTail.map((line) => safeText(line, 256));
  const said = tail.length === 0 ? "" : `; its last output:\n${tail.join("\n")}`;
  return new CookieError("plugin_crashed", `the plugin ${plugin} ended (${how})${said}`, {
    data: { plugin, exit_code: exit.code, signal: exit.signal },
  });
}

function settledWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
