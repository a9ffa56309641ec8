import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  EventPayloadOf,
  HostLog,
  Manifest,
  ParamsOf,
  RunId,
  SessionId,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import { onTestFinished } from "vitest";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import type { PluginEntry } from "../../../../kernel/src/config/plugin-entry.ts";
import { PluginBus } from "../../../../kernel/src/event/plugin-bus.ts";
import type { CallContext } from "../../../../kernel/src/plugin/host-services.ts";
import type { PluginCall } from "../../../../kernel/src/plugin/plugin-call.ts";
import { PluginHost } from "../../../../kernel/src/plugin/plugin-host.ts";
import type { PluginRosterOptions } from "../../../../kernel/src/plugin/plugin-roster.ts";
import type { ProgressNews } from "../../../../kernel/src/plugin/progress-news.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

export const FIXTURES = join(import.meta.dirname, "../../../fixtures/plugins");

export interface OpenedHost {
  readonly host: PluginHost;
  readonly root: string;
  readonly workspaceRoot: string;
  readonly logged: string[];
  readonly hostLogs: ParamsOf<typeof HostLog>[];
  readonly contexts: CallContext[];
  /** What plugins published durably, and what was noted of them. */
  readonly published: EventPayloadOf<"plugin_event_added">[];
  readonly notes: { sessionId: SessionId; plugin: string; kind: string; message: string }[];
  readonly bus: PluginBus;
}

/** A real plugin host with real processes; everything of it is gone when the test ends. */
export async function openHost(options: Partial<PluginRosterOptions>): Promise<OpenedHost> {
  const root = await tempDirectory();
  const workspaceRoot = await tempDirectory();
  const logged: string[] = [];
  const hostLogs: ParamsOf<typeof HostLog>[] = [];
  const contexts: CallContext[] = [];
  const published: OpenedHost["published"] = [];
  const notes: OpenedHost["notes"] = [];
  const bus = new PluginBus();
  const host = await PluginHost.open({
    firstParty: [],
    entries: [],
    hostEntry: join(FIXTURES, "host.mjs"),
    root,
    workspaceRoot,
    engineVersion: "0.1.0",
    env: {},
    secretEnvNames: new Set(),
    logger: { log: (_level, message) => logged.push(message) },
    workspaceStillTrusted: () => Promise.resolve(true),
    services: {
      artifacts: createLocalArtifactStore({ storeDir: await tempDirectory() }),
      configSection: () => Promise.resolve(undefined),
      readArtifact: async (context) => {
        contexts.push(context);
        const page = { next_offset: null, next_byte: null, total_lines: 1, total_bytes: 4 };
        return { text: "page", source: "artifact", ...page };
      },
      writeArtifact: async (context, bytes) => {
        contexts.push(context);
        const sha256 = "0".repeat(64);
        return { uri: `artifact://${sha256}`, sha256, bytes: bytes.byteLength };
      },
      log: (_plugin, params) => hostLogs.push(params),
      events: {
        bus,
        append: async (_sessionId, payload) => void published.push(payload),
        note: (sessionId, plugin, kind, message) =>
          notes.push({ sessionId, plugin, kind, message }),
      },
      toolOwner: () => undefined,
    },
    ...options,
  });
  onTestFinished(() => host.close());
  return { host, root, workspaceRoot, logged, hostLogs, contexts, published, notes, bus };
}

/** A directory that is gone when the test ends. */
export async function tempDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "cookie-plugin-")));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A user-layer entry for a fixture directory. */
export function entryFor(name: string, more: Partial<PluginEntry> = {}): PluginEntry {
  return {
    name,
    layer: "user",
    launch: { kind: "path", directory: join(FIXTURES, name) },
    env: {},
    enabled: true,
    interceptionTimeoutMs: 2_000,
    startupTimeoutMs: 60_000,
    shutdownGraceMs: 3_000,
    toolTimeoutMs: 60_000,
    config: {},
    trust: "untrusted",
    grants: [],
    required: false,
    ...more,
  };
}

export const SESSION = createId<SessionId>();

/** One call with its captured deltas. */
export function callOf(
  tool: string,
  args: Record<string, unknown> = {},
  more: Omit<Partial<PluginCall>, "params"> & { params?: Partial<PluginCall["params"]> } = {},
): PluginCall & { readonly deltas: ProgressNews[]; readonly text: () => string } {
  const deltas: ProgressNews[] = [];
  const { params, ...rest } = more;
  return {
    timeoutMs: 60_000,
    generation: null,
    rootSessionId: SESSION,
    onProgress: async (delta) => {
      // Bytes are good only until this has returned.
      const output = delta.output.map(({ stream, data }) => ({ stream, data: [bytesOf(data)] }));
      deltas.push({ ...delta, output });
    },
    ...rest,
    params: {
      tool,
      session_id: SESSION,
      run_id: createId<RunId>(),
      invocation_id: createId<ToolCallId>(),
      arguments: args,
      cwd: FIXTURES,
      workspace_root: FIXTURES,
      resource: null,
      prepared: null,
      stdin: false,
      limits: { max_lines: 2000, max_bytes: 51_200 },
      ...params,
    },
    deltas,
    text: () =>
      Buffer.concat(
        deltas.flatMap(({ output }) => output.map(({ data }) => bytesOf(data))),
      ).toString(),
  };
}

/** A copy of what one piece brought. */
export function bytesOf(data: ProgressNews["output"][number]["data"]): Buffer {
  return typeof data === "string" ? Buffer.from(data) : Buffer.concat(data);
}

export const never = (): AbortSignal => new AbortController().signal;

/** A manifest for checks that need no process. */
export function manifestOf(more: Partial<Manifest> = {}): Manifest {
  return {
    manifest: 1,
    name: "sample",
    version: "1.0.0",
    protocol: ["0.1.0"],
    runtime: { kind: "node", entry: "main.mjs" },
    ...more,
  };
}

/** Resolves when `check` holds; the test's own timeout bounds it. */
export async function eventually(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 5));
}
