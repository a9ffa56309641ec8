import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Kernel,
  type LogLevel,
  type OpenKernelOptions,
  openKernel,
} from "@cookie-agent/kernel";
import { CookieClient, type SubscribeOptions } from "@cookie-agent/sdk/client";
import {
  type ClientKey,
  type EventPayload,
  type PermissionMode,
  type RunId,
  type RunSelection,
  RunStart,
  SessionCreate,
  type SessionId,
  SessionResume,
  SessionSetPermissionMode,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { onTestFinished } from "vitest";
import {
  type Answer,
  type ModelServer,
  providerToml,
  type ScriptedMedia,
  startModelServer,
  type Wire,
} from "./model-server.ts";
import { SessionWatch } from "./session-watch.ts";
import { createTempProject, type TempProject } from "./temp-project.ts";

const require = createRequire(import.meta.url);
const HOST_ENTRY = fileURLToPath(new URL("../../sdk/dist/host.js", import.meta.url));
const FIRST_PARTY = ["@cookie-agent/plugin-fs", "@cookie-agent/plugin-bash"].map((name) =>
  dirname(require.resolve(`${name}/cookie-plugin.json`)),
);

/** What an agent may do without asking, in the words of an agent document. */
export const ALLOW_ALL = { read: "allow", write: "allow", bash: "allow", plugin: "allow" };

export interface TestKernelOptions {
  /** What the model answers, in order. */
  readonly answers?: readonly Answer[];
  readonly wire?: Wire;
  /** What the model takes beside text. */
  readonly media?: ScriptedMedia;
  /** Of the model, in tokens. */
  readonly contextTokens?: number;
  /** Added to config.toml after the provider. Without its own `[session_title]` no titles are made. */
  readonly config?: string;
  /** Agent documents by id; by default `primary`, which may do everything. */
  readonly agents?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly headless?: boolean;
  readonly trust?: "stored" | "this_process";
  /** Where sessions and artifacts lie; below the project's home by default. */
  readonly dataDir?: string;
  /** Reopens an earlier kernel's home and directory; its configuration is kept. */
  readonly on?: Pick<TestKernel, "project" | "server">;
  readonly apiKey?: string;
  /** Package folders beside those of the shipped plugins. */
  readonly firstParty?: (project: TempProject) => readonly string[];
  /** Called before the kernel opens. */
  prepare?(project: TempProject): Promise<unknown>;
}

export interface RunResult {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly end: EventPayload;
  /** The events of the run. */
  readonly events: readonly StoredEvent[];
  readonly watch: SessionWatch;
}

/** A real kernel with its plugins, a model server on loopback and a client; all gone after the test. */
export interface TestKernel {
  readonly project: TempProject;
  readonly server: ModelServer;
  readonly kernel: Kernel;
  readonly client: CookieClient;
  readonly selection: RunSelection;
  readonly logged: readonly { level: LogLevel; message: string; fields: unknown }[];
  /** A second client on the same kernel. */
  connect(): Promise<CookieClient>;
  createSession(options?: { mode?: PermissionMode; selection?: RunSelection }): Promise<SessionId>;
  watch(sessionId: SessionId, options?: SubscribeOptions): SessionWatch;
  start(
    sessionId: SessionId,
    input: string,
    options?: { key?: string; selection?: RunSelection },
  ): Promise<RunId>;
  /** Starts a run, in a new session unless one is given, and waits for its end. */
  run(
    input: string,
    options?: { session?: SessionId; mode?: PermissionMode; selection?: RunSelection },
  ): Promise<RunResult>;
  close(): Promise<void>;
}

export async function openTestKernel(options: TestKernelOptions = {}): Promise<TestKernel> {
  const project = options.on?.project ?? (await createTempProject());
  const server = options.on?.server ?? (await startModelServer());
  server.enqueue(...(options.answers ?? []));
  if (options.on === undefined) {
    onTestFinished(async () => {
      await server.close();
      await project.remove();
    });
    await configure(project, server, options);
  }
  const logged: TestKernel["logged"][number][] = [];
  const kernel = await openKernel({
    ...kernelOptions(project, options),
    logger: { log: (level, message, fields) => logged.push({ level, message, fields }) },
  });
  onTestFinished(() => kernel.close());
  const client = await CookieClient.connect(kernel.connect());
  const selection: RunSelection = {
    agent: "primary",
    model: { model: "custom.test/scripted", variant: null },
  };
  let runs = 0;
  const self: TestKernel = {
    project,
    server,
    kernel,
    client,
    selection,
    logged,
    connect: () => CookieClient.connect(kernel.connect()),
    async createSession({ mode, selection: chosen = selection } = {}) {
      const { session } = await client.request(SessionCreate, { selection: chosen });
      if (mode !== undefined) {
        await client.request(SessionSetPermissionMode, { session_id: session.session_id, mode });
      }
      return session.session_id;
    },
    watch: (sessionId, subscription) => new SessionWatch(client, sessionId, subscription),
    async start(sessionId, input, { key, selection: chosen = selection } = {}) {
      runs += 1;
      const started = await client.request(RunStart, {
        session_id: sessionId,
        client_run_id: (key ?? `run-${process.pid}-${runs}-${Date.now()}`) as ClientKey,
        selection: chosen,
        input,
      });
      return started.run_id;
    },
    async run(input, { session, ...created } = {}) {
      const sessionId = session ?? (await self.createSession(created));
      if (session !== undefined) await client.request(SessionResume, { session_id: session });
      const watch = self.watch(sessionId);
      const runId = await self.start(sessionId, input, created);
      const end = await watch.end(runId);
      const events = watch.events.filter((event) => event.run_id === runId);
      return { sessionId, runId, end, events, watch };
    },
    async close() {
      client.close();
      await kernel.close();
    },
  };
  return self;
}

/** How a kernel is opened in a project. */
export function kernelOptions(
  project: TempProject,
  options: TestKernelOptions = {},
): OpenKernelOptions {
  return {
    cwd: project.cwd,
    homeDir: project.home,
    env: { PATH: process.env["PATH"], HOME: project.home, ...options.env },
    firstPartyDirectories: [...FIRST_PARTY, ...(options.firstParty?.(project) ?? [])],
    hostEntry: HOST_ENTRY,
    trust: options.trust ?? "stored",
    headless: options.headless ?? false,
    engineVersion: "0.0.0-test",
    ...(options.dataDir && { dataDir: options.dataDir }),
  };
}

const UNTITLED = "[session_title]\ngenerate_on_first_turn = false\n";

/** Configures a project for a model server, as `openTestKernel` does. */
export async function configure(
  project: TempProject,
  server: ModelServer,
  options: TestKernelOptions = {},
): Promise<void> {
  const {
    wire,
    apiKey,
    media,
    contextTokens,
    agents = { primary: agentDocument(ALLOW_ALL) },
  } = options;
  const provider = providerToml(server, {
    ...(wire && { wire }),
    ...(apiKey && { apiKey }),
    ...(media && { media }),
    ...(contextTokens !== undefined && { contextTokens }),
  });
  const config = options.config ?? "";
  // A title comes beside its run, so the order of events would differ from time to time.
  const titles = config.includes("[session_title]") ? "" : UNTITLED;
  await project.writeState("config.toml", `${provider}\n${config}\n${titles}`);
  for (const [id, document] of Object.entries(agents)) {
    await project.writeState(`agents/${id}.md`, document);
  }
  await options.prepare?.(project);
}

/** An agent document; `permissions` are its rules, action by action. */
export function agentDocument(
  permissions: Readonly<Record<string, unknown>>,
  options: { models?: readonly string[]; prompt?: string; mode?: string; maxOutput?: number } = {},
): string {
  const {
    models = ["custom.test/scripted"],
    prompt = "You are under test.",
    mode = "primary",
  } = options;
  const entries = models.map((model) => `  - model: ${model}\n`).join("");
  return `---
description: Under test
mode: ${mode}
enabled: true
models:
${entries}permissions: ${JSON.stringify(permissions)}
---
${prompt}
`;
}
