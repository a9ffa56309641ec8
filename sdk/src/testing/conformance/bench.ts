import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CookieError } from "../../protocol/errors.ts";
import { PluginInitialize } from "../../protocol/plugin-methods.ts";
import type { JsonObject } from "../../protocol/scalars.ts";
import type { ToolDeclaration } from "../../protocol/tool.ts";
import { PLUGIN_PROTOCOL_VERSION } from "../../protocol/version.ts";
import { type Answer, describeAnswer, tellAnswer } from "../answer.ts";
import {
  type FakeFolders,
  type FakeServices,
  grantsOf,
  inMemoryServices,
} from "../fake-services.ts";
import { initializeParams } from "../initialize-params.ts";
import { preparedPart } from "../prepared-part.ts";
import type { CallRequest, StartedCall } from "../wire-driver.ts";
import { PluginPeer } from "./plugin-peer.ts";
import type { ConformanceSamples, SampleCall } from "./samples.ts";
import type { Subject } from "./subject.ts";
import { fail, skip } from "./verdict.ts";

/** How long the kit waits for a plugin before it says that nothing came, in milliseconds. */
export interface ConformanceLimits {
  /** `plugin/initialize` (E 12: 10 s). */
  readonly startMs: number;
  /** Any other answer. */
  readonly answerMs: number;
  /** The answer to a cancelled call: twice the 2 s of E-105, because the machine may be busy. */
  readonly cancelMs: number;
  /** Leaving after shutdown: the grace period of 3 s, and as much again. */
  readonly leaveMs: number;
}

export const DEFAULT_LIMITS: ConformanceLimits = {
  startMs: 10_000,
  answerMs: 10_000,
  cancelMs: 4_000,
  leaveMs: 6_000,
};

/**
 * What a process gets beside its entry's `env` (E-046): nothing; the names that its manifest asks for, as a tier gets
 * them that may have them; or all of this shell, which no plugin is promised.
 */
export type Environment = "cleared" | "granted" | "shell";

export interface BenchOptions {
  readonly subject: Subject;
  readonly name: string;
  readonly samples: ConformanceSamples;
  readonly limits: ConformanceLimits;
  /** Entry of the shared host: the plugin then runs behind `ch`. */
  readonly hostEntry: string | null;
  readonly environment: Environment;
  /** Ends every process at once; nothing is started after it. */
  readonly signal?: AbortSignal | undefined;
}

export interface StartOptions {
  readonly raw?: boolean;
  readonly protocolVersion?: string;
  readonly id?: string | number;
}

/** A plugin that has introduced itself. */
export interface Started {
  readonly peer: PluginPeer;
  readonly introduction: JsonObject;
}

/** What one check works with: fresh processes in fresh folders, all of them gone when it ends. */
export class Bench {
  readonly options: BenchOptions;
  readonly #peers: PluginPeer[] = [];
  readonly #folders: string[] = [];

  constructor(options: BenchOptions) {
    this.options = options;
    options.signal?.addEventListener("abort", this.#onAbort);
  }

  get limits(): ConformanceLimits {
    return this.options.limits;
  }

  get samples(): ConformanceSamples {
    return this.options.samples;
  }

  get isShared(): boolean {
    return this.options.hostEntry !== null;
  }

  /** The declared tools: of the manifest, or of the introduction where there is none. */
  toolsOf(started: Started): readonly ToolDeclaration[] {
    const { manifest } = this.options.subject;
    if (manifest !== null) return manifest.tools ?? [];
    const { tools } = PluginInitialize.result.parse(started.introduction);
    return tools ?? [];
  }

  toolOf(started: Started, name: string): ToolDeclaration {
    const tools = this.toolsOf(started);
    const tool = tools.find((candidate) => candidate.name === name);
    if (tool !== undefined) return tool;
    return fail(
      `has no tool ${name}, which conformance.json calls`,
      `declare it, or conformance.json must call one of ${tools.map((each) => each.name).join(", ") || "its tools"}`,
    );
  }

  /** A folder that is removed when the check ends. */
  async folder(files: Readonly<Record<string, string>> = {}): Promise<string> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "cookie-conformance-")));
    this.#folders.push(folder);
    await writeFiles(folder, files);
    return folder;
  }

  /** A process, to which nothing was sent yet; behind `ch` its entry is loaded. */
  async open(workspace: string, raw = true): Promise<PluginPeer> {
    requireNotCancelled(this.options.signal);
    const { subject, hostEntry, samples, name } = this.options;
    const shared = hostEntry !== null;
    const scratch = await this.folder();
    const peer = new PluginPeer({
      command: shared ? process.execPath : subject.command,
      args: shared ? [hostEntry] : subject.args,
      cwd: workspace,
      env: {
        ...this.#inherited(),
        ...samples.env,
        COOKIE_PLUGIN_PROTOCOL: PLUGIN_PROTOCOL_VERSION,
      },
      services: this.#services({ workspace, scratch }),
      scratch,
      raw,
      channel: shared ? name : null,
    });
    this.#peers.push(peer);
    if (peer.control !== null) {
      const params = { plugin: name, entry: subject.entry, sha256: null };
      const answer = await peer.control.request("process/attach", params, this.limits.startMs);
      if (answer.kind !== "result") {
        fail(
          `could not be loaded into a shared host: ${describeAnswer(answer)}`,
          "call serve once, at the end of its entry",
        );
      }
    }
    return peer;
  }

  /** Sends `plugin/initialize` to an opened process. */
  async introduce(
    peer: PluginPeer,
    workspace: string,
    options: StartOptions & { readonly name?: string } = {},
  ): Promise<Answer> {
    const { subject, name, samples } = this.options;
    const data = await this.folder();
    const params = initializeParams({
      name: options.name ?? name,
      tier: this.#isFirstParty ? "first_party" : "untrusted",
      manifestDigest: subject.manifestDigest,
      services: grantsOf(peer.services),
      raw: options.raw ?? true,
      dynamicTools: true,
      config: samples.config ?? {},
      paths: { workspace, data, scratch: peer.scratch },
      ...(options.protocolVersion === undefined
        ? {}
        : { protocolVersion: options.protocolVersion }),
    });
    const { driver } = peer;
    const { startMs } = this.limits;
    return driver.request("plugin/initialize", params, startMs, options.id ?? driver.takeId());
  }

  /** A process that has introduced itself. */
  async start(workspace: string, options: StartOptions = {}): Promise<Started> {
    const peer = await this.open(workspace, options.raw ?? true);
    const answer = await this.introduce(peer, workspace, options);
    if (answer.kind === "result") return { peer, introduction: answer.result };
    if (peer.pid === 0) {
      fail(await peer.exited, "name a program that is there and has the right to be executed");
    }
    return fail(
      tellAnswer("plugin/initialize", answer),
      "answer it with protocol_version, name and version, in a line that is flushed, with its id (0 is one)",
    );
  }

  /** Prepares where the tool does so, and calls. */
  async call(
    started: Started,
    sample: SampleCall,
    workspace: string,
    options: Partial<Pick<CallRequest, "acknowledge" | "keep" | "stdin">> = {},
    timeoutMs: number = this.limits.answerMs,
  ): Promise<StartedCall> {
    const declaration = this.toolOf(started, sample.tool);
    const request = {
      tool: sample.tool,
      arguments: sample.arguments,
      output: declaration.output ?? { mode: "single" as const },
      cwd: workspace,
      ...options,
    };
    const { driver } = started.peer;
    if (declaration.prepare?.mode !== "dynamic") return driver.call(request, timeoutMs);
    const answer = await driver.prepare(request, this.limits.answerMs);
    if (answer.kind !== "result") skip(`the call could not be prepared: ${describeAnswer(answer)}`);
    return driver.call({ ...request, ...preparedPart(answer.result) }, timeoutMs);
  }

  /** Everything sent before was handled; fails when the plugin does not answer. */
  async barrier(peer: PluginPeer, after: string): Promise<void> {
    const answer = await peer.driver.request("plugin/ping", {}, this.limits.answerMs);
    if (answer.kind !== "none") return;
    fail(`did not answer plugin/ping after ${after}: ${answer.why}`, "go on serving");
  }

  /** Ends every process and removes every folder; bounded. */
  async close(): Promise<void> {
    this.options.signal?.removeEventListener("abort", this.#onAbort);
    await Promise.all(this.#peers.map((peer) => peer.end()));
    for (const folder of this.#folders) {
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    }
  }

  readonly #onAbort = (): void => {
    for (const peer of this.#peers) peer.kill();
  };

  get #isFirstParty(): boolean {
    return this.isShared || this.options.name.startsWith("builtin.");
  }

  #inherited(): Record<string, string> {
    const { environment, subject } = this.options;
    if (environment === "cleared") return {};
    if (environment === "shell") return ownVariables(() => true);
    const { inherit = [] } = subject.manifest?.env ?? {};
    // Below first party a grant gives names and never everything (E-114).
    return ownVariables(
      (name) =>
        name !== "COOKIE_DAEMON_TOKEN" &&
        (inherit === "*" ? this.#isFirstParty : inherit.includes(name)),
    );
  }

  #services(folders: FakeFolders): FakeServices {
    const wanted = this.options.subject.manifest?.capabilities?.host ?? [];
    const all = inMemoryServices(folders);
    return Object.fromEntries(
      Object.entries(all).filter(([method]) =>
        grantsOf({ [method]: () => ({}) }).some((grant) => wanted.includes(grant)),
      ),
    );
  }
}

/** Throws `cancelled`, which is no finding about the plugin. */
export function requireNotCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new CookieError("cancelled", "the test was cancelled");
}

export async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** Ids of the made-up session that notifications and hooks speak of. */
export const SESSION = {
  session_id: randomUUID(),
  run_id: randomUUID(),
};

function ownVariables(isWanted: (name: string) => boolean): Record<string, string> {
  const wanted = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isWanted(entry[0]),
  );
  return Object.fromEntries(wanted);
}
