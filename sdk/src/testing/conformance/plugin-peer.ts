import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { BadLine } from "../../rpc/line-reader.ts";
import { createLineTransport } from "../../rpc/line-transport.ts";
import type { Transport } from "../../rpc/transport.ts";
import { lastWords } from "../answer.ts";
import type { FakeServices } from "../fake-services.ts";
import { WireDriver } from "../wire-driver.ts";
import { killTree, processesOf } from "./process-tree.ts";

export interface PeerOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly services: FakeServices;
  /** What the plugin is told is its scratch directory. */
  readonly scratch: string;
  readonly raw: boolean;
  /** The plugin's id where it runs in a shared host; null for a process of its own. */
  readonly channel: string | null;
}

/** What is kept of a plugin's stderr. */
const STDERR_CHARS = 4096;
/** A plugin that prints more than any check asks for is ended. */
const MOST_OUTPUT_BYTES = 1024 * 1024 * 1024;
const REAP_MS = 4000;
const POLL_MS = 20;
/** A process that closed its output has this long to end, so that its status and last words are told. */
const LEAVE_MS = 1000;

/** One plugin process and the wire to it. The owner calls `end`, which leaves nothing behind. */
export class PluginPeer {
  readonly driver: WireDriver;
  /** Of a shared host: the control channel (E-014). */
  readonly control: WireDriver | null;
  readonly badLines: BadLine[] = [];
  readonly exited: Promise<string>;
  readonly services: FakeServices;
  readonly scratch: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #channel: string | null;
  #stderr = "";
  #hasExited = false;

  constructor(options: PeerOptions) {
    this.services = options.services;
    this.scratch = options.scratch;
    this.#channel = options.channel;
    this.#child = spawn(options.command, [...options.args], {
      cwd: options.cwd,
      env: { ...options.env },
      detached: process.platform !== "win32",
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const child = this.#child;
    child.stdin.on("error", () => undefined);
    child.stderr.on("error", () => undefined);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS);
    });
    let received = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      received += chunk.byteLength;
      if (received > MOST_OUTPUT_BYTES) this.kill();
    });
    const line = createLineTransport({
      input: child.stdout,
      output: child.stdin,
      raw: options.raw,
      onBadLine: (bad) => {
        if (this.badLines.length < 16) this.badLines.push(bad);
      },
    });
    const open = (transport: Transport) =>
      new WireDriver({
        transport,
        services: options.services,
        raw: options.raw,
        closed: () => settledWithin(this.exited, LEAVE_MS),
      });
    if (this.#channel === null) {
      this.control = null;
      this.driver = open(line);
    } else {
      this.control = open(line.channel("$host"));
      this.driver = open(line.channel(this.#channel));
    }
    this.exited = new Promise((resolve) => {
      const finish = (how: string) => {
        this.#hasExited = true;
        const tail = lastWords(this.#stderr);
        const why = tail === "" ? `the plugin ${how}` : `the plugin ${how}, and said: ${tail}`;
        this.driver.lose(why);
        this.control?.lose(why);
        resolve(how);
      };
      child.once("error", (error: NodeJS.ErrnoException) => {
        if (child.pid === undefined) finish(whyNotStarted(options.command, error));
      });
      child.once("exit", (code, signal) => {
        const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
        // What it wrote last is still in the pipe; a child that holds the pipe must not keep us.
        const timer = setTimeout(() => finish(how), 300);
        child.once("close", () => {
          clearTimeout(timer);
          finish(how);
        });
      });
    });
    keepUntilExit(this);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** A frame as the bytes of its line, without the LF. */
  encode(frame: Readonly<Record<string, unknown>>): Buffer {
    const channel = this.#channel === null ? {} : { ch: this.#channel };
    return Buffer.from(JSON.stringify({ ...channel, jsonrpc: "2.0", ...frame }));
  }

  /** Writes bytes as they are. */
  write(bytes: string | Uint8Array): void {
    this.#child.stdin.write(bytes);
  }

  closeInput(): void {
    this.#child.stdin.end();
  }

  /** True when the process is gone within the time. */
  async leaves(timeoutMs: number): Promise<boolean> {
    return settledWithin(this.exited, timeoutMs);
  }

  /** Waits until what hangs below the process is no more than `allowed`; what is left is the answer. */
  async remaining(allowed: readonly number[], timeoutMs: number): Promise<number[]> {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const left = (processesOf(this.pid) ?? []).filter((pid) => !allowed.includes(pid));
      if (left.length === 0 || performance.now() > until) return left;
      await pause(POLL_MS);
    }
  }

  kill(): void {
    if (this.#child.pid !== undefined) killTree(this.#child.pid);
  }

  /** Ends the process and everything below it; bounded. */
  async end(): Promise<void> {
    living.delete(this);
    this.kill();
    await settledWithin(this.exited, REAP_MS);
    this.#child.stdin.destroy();
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }
}

const living = new Set<PluginPeer>();

/** A process that ends by itself takes what it started along; one listener, however many there are. */
function keepUntilExit(peer: PluginPeer): void {
  if (living.size === 0) {
    process.off("exit", killLiving);
    process.on("exit", killLiving);
  }
  living.add(peer);
}

function killLiving(): void {
  for (const peer of living) peer.kill();
}

export async function settledWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  const settled = await Promise.race([work.then(() => true as const), late]);
  clearTimeout(timer);
  return settled;
}

function whyNotStarted(command: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ENOENT") {
    return `cannot be started (ENOENT): ${command} is not there, or the interpreter that its first line names`;
  }
  if (code === "EACCES") return `cannot be started (EACCES): ${command} may not be executed`;
  return `cannot be started (${code ?? message}): ${command}`;
}
