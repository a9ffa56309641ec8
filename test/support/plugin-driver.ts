import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { CookieError } from "@cookie-agent/sdk/protocol";

type Json = Record<string, unknown>;

export interface DriverOptions {
  /** Working directory and workspace root of every call. */
  readonly workspace: string;
  readonly config?: Json;
  /** Environment of the plugin process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Announces that output is taken as raw bytes (E-016). */
  readonly raw?: boolean;
  /** Answers `host/artifacts/read`. */
  readonly readArtifact?: (params: Json) => Json;
}

/** Options of one call that tests vary. */
export interface CallOptions {
  readonly prepared?: string | null;
  readonly stdin?: boolean;
  /** False: output is not acknowledged before `acknowledge` is called. */
  readonly acknowledge?: boolean;
  /** False: output is counted and thrown away. */
  readonly keepOutput?: boolean;
  readonly cwd?: string;
}

/** One answer of a plugin; the members are those of the wire. */
export interface CallResult {
  readonly content?: string;
  readonly streamed?: true;
  readonly title?: string;
  readonly display?: string;
  readonly metadata?: Json;
}

export interface PrepareResult {
  readonly resources: { action: string; label: string | null; lifetime?: string }[];
  readonly arguments?: Json;
  readonly serialize?: string[];
  readonly prepared?: string;
  readonly primary_argument?: string;
  readonly detail?: string;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface DeltaChunk {
  readonly stream?: string;
  readonly text?: string;
  readonly byte_length?: number;
}

/** A call under way and what it has printed so far. */
export class DrivenCall {
  readonly invocationId: string = randomUUID();
  readonly result: Promise<CallResult>;
  readonly deltas: { stream?: string; text: string }[] = [];
  /** What came as raw bytes. */
  readonly rawDeltas: { stream?: string; bytes: Buffer }[] = [];
  byteLength = 0;
  readonly #driver: PluginDriver;
  readonly #options: CallOptions;
  readonly #id: number;
  #acknowledging: boolean;
  #watchers: (() => void)[] = [];

  constructor(driver: PluginDriver, tool: string, args: Json, options: CallOptions) {
    this.#driver = driver;
    this.#options = options;
    this.#acknowledging = options.acknowledge !== false;
    const params = {
      ...driver.invocation(tool, args, this.invocationId, options.cwd),
      resource: null,
      prepared: options.prepared ?? null,
      stdin: options.stdin ?? false,
      limits: { max_lines: 2000, max_bytes: 51_200 },
    };
    const { id, answer } = driver.request("plugin/tools/call", params);
    this.#id = id;
    this.result = answer as Promise<CallResult>;
    this.result.catch(() => undefined);
  }

  /** Everything printed to one stream so far. */
  output(stream?: string): string {
    return this.deltas
      .filter((delta) => delta.stream === stream)
      .map((delta) => delta.text)
      .join("");
  }

  /** Resolves once the text was printed. */
  async printed(text: string, stream = "stdout"): Promise<void> {
    while (!this.output(stream).includes(text)) await this.nextDelta();
  }

  /** Resolves when more output comes. */
  nextDelta(): Promise<void> {
    return new Promise((resolve) => this.#watchers.push(resolve));
  }

  cancel(): void {
    this.#driver.notify("$/cancelRequest", { id: this.#id });
  }

  async stdin(data: string | null, eof: boolean): Promise<boolean> {
    const params = {
      invocation_id: this.invocationId,
      ...(data === null ? {} : { data: Buffer.from(data).toString("base64") }),
      eof,
    };
    const answer = await this.#driver.request("plugin/tools/stdin", params).answer;
    return (answer as { accepted: boolean }).accepted;
  }

  /** Acknowledges what came so far, and from now on what comes. */
  acknowledge(): void {
    this.#acknowledging = true;
    this.#driver.notify("plugin/tools/progress_ack", {
      invocation_id: this.invocationId,
      bytes: this.byteLength,
    });
  }

  takeDelta(output: DeltaChunk[], raw: Buffer): void {
    let rest = raw;
    for (const { stream, text, byte_length: rawBytes = 0 } of output) {
      const name = stream === undefined ? {} : { stream };
      this.byteLength += rawBytes + Buffer.byteLength(text ?? "");
      if (this.#options.keepOutput !== false) {
        if (text !== undefined) this.deltas.push({ ...name, text });
        else this.rawDeltas.push({ ...name, bytes: rest.subarray(0, rawBytes) });
      }
      rest = rest.subarray(rawBytes);
    }
    if (this.#acknowledging) this.acknowledge();
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const watcher of watchers) watcher();
  }
}

/** Speaks the plugin protocol with one plugin process, line by line, as the kernel would. */
export class PluginDriver {
  readonly #child: ChildProcess;
  readonly #options: DriverOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #calls = new Map<string, DrivenCall>();
  readonly #exited: Promise<void>;
  /** Removed once the plugin is gone, however it ended. */
  readonly #scratch = mkdtempSync(join(tmpdir(), "cookie-scratch-"));
  /** What the plugin declared in its handshake. */
  declared: Json = {};
  #nextId = 1;

  private constructor(entry: string, options: DriverOptions) {
    this.#options = options;
    this.#child = spawn(process.execPath, [entry], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...(options.env ?? process.env), COOKIE_PLUGIN_PROTOCOL: "0.1.0" },
    });
    this.#child.stdin?.on("error", () => undefined);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", () => {
        rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 10 });
        for (const { reject } of this.#pending.values()) {
          reject(new CookieError("plugin_crashed", "the plugin process ended"));
        }
        resolve();
      });
    });
    if (this.#child.stdout !== null) {
      this.#listen(this.#child.stdout);
    }
  }

  /** Starts a built plugin and shakes hands with it. */
  static async start(entry: string, options: DriverOptions): Promise<PluginDriver> {
    if (!existsSync(entry)) throw new Error(`${entry} is missing; run the build first`);
    const driver = new PluginDriver(entry, options);
    const { answer } = driver.request("plugin/initialize", {
      protocol_version: "0.1.0",
      engine_version: "0.0.0",
      plugin: { name: "builtin.test", tier: "first_party", manifest_digest: null },
      capabilities: {
        ping: true,
        shutdown: true,
        tools: true,
        event_streaming: false,
        event_publishing: false,
        interception: false,
        prepare: true,
        progress: true,
        ...(options.raw === true && { raw_output: true }),
        dynamic_tools: false,
        services: ["artifacts.read"],
      },
      config: options.config ?? {},
      paths: { workspace: options.workspace, data: driver.#scratch, scratch: driver.#scratch },
      limits: { frame_bytes: 4_194_304, progress_window_bytes: 1_048_576 },
    });
    driver.declared = (await answer) as Json;
    return driver;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async prepare(tool: string, args: Json): Promise<PrepareResult> {
    const params = this.invocation(tool, args, randomUUID());
    return (await this.request("plugin/tools/prepare", params).answer) as PrepareResult;
  }

  discard(tokens: readonly string[]): void {
    this.notify("plugin/tools/discard", { prepared: tokens });
  }

  /** Starts one call. */
  call(tool: string, args: Json, options: CallOptions = {}): DrivenCall {
    const call = new DrivenCall(this, tool, args, options);
    this.#calls.set(call.invocationId, call);
    return call;
  }

  /** Makes a call with what was prepared for it. */
  commit(tool: string, args: Json, prepared: PrepareResult): Promise<CallResult> {
    const { result } = this.call(tool, prepared.arguments ?? args, {
      prepared: prepared.prepared ?? null,
    });
    return result;
  }

  /** Prepares and calls. */
  async run(tool: string, args: Json): Promise<CallResult> {
    return this.commit(tool, args, await this.prepare(tool, args));
  }

  /** Resolves when the plugin has answered everything sent before. */
  async ping(): Promise<void> {
    await this.request("plugin/ping", {}).answer;
  }

  /** Asks the plugin to leave and waits until it is gone. */
  async close(): Promise<void> {
    this.notify("plugin/shutdown", {});
    this.#child.stdin?.end();
    await this.#exited;
  }

  /** Ends the plugin's input only, as the death of the kernel would. */
  async hangUp(): Promise<void> {
    this.#child.stdin?.end();
    await this.#exited;
  }

  invocation(tool: string, args: Json, invocationId: string, cwd?: string): Json {
    const { workspace } = this.#options;
    return {
      tool,
      session_id: randomUUID(),
      run_id: randomUUID(),
      context_id: randomUUID(),
      invocation_id: invocationId,
      arguments: args,
      cwd: cwd ?? workspace,
      workspace_root: workspace,
    };
  }

  request(method: string, params: Json): { id: number; answer: Promise<unknown> } {
    const id = this.#nextId;
    this.#nextId += 1;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
    this.#send({ jsonrpc: "2.0", id, method, params });
    return { id, answer };
  }

  notify(method: string, params: Json): void {
    this.#send({ jsonrpc: "2.0", method, params });
  }

  #send(frame: Json): void {
    this.#child.stdin?.write(`${JSON.stringify(frame)}\n`);
  }

  /** Frames by hand: a line, and behind it as many bytes as it says. */
  #listen(input: Readable): void {
    let unread: Buffer = Buffer.alloc(0);
    input.on("data", (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk]);
      for (let end = unread.indexOf("\n"); end >= 0; end = unread.indexOf("\n")) {
        const frame = JSON.parse(unread.toString("utf8", 0, end)) as Json;
        const next = end + 1 + Number(frame["raw"] ?? 0);
        if (next > unread.length) return;
        this.#receive(frame, unread.subarray(end + 1, next));
        unread = unread.subarray(next);
      }
    });
  }

  #receive(frame: Json, raw: Buffer): void {
    if (frame["method"] === "host/tools/progress") {
      const params = frame["params"] as { invocation_id: string; output?: DeltaChunk[] };
      this.#calls.get(params.invocation_id)?.takeDelta(params.output ?? [], raw);
      return;
    }
    if (frame["method"] === "host/artifacts/read") {
      this.#answerArtifact(frame);
      return;
    }
    const pending = this.#pending.get(frame["id"] as number);
    if (pending === undefined) return;
    this.#pending.delete(frame["id"] as number);
    const error = frame["error"] as { message: string; data?: Json } | undefined;
    if (error === undefined) {
      pending.resolve(frame["result"]);
      return;
    }
    const { code, ...data } = error.data ?? {};
    pending.reject(new CookieError(String(code), error.message, { data }));
  }

  #answerArtifact(frame: Json): void {
    const id = frame["id"];
    try {
      const result = this.#options.readArtifact?.(frame["params"] as Json) ?? {};
      this.#send({ jsonrpc: "2.0", id, result });
    } catch (error) {
      const code = error instanceof CookieError ? error.code : "internal";
      const message = error instanceof Error ? error.message : "";
      this.#send({ jsonrpc: "2.0", id, error: { code: -31020, message, data: { code } } });
    }
  }
}
