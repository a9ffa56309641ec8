import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { CookieError, type PluginStatus, type Revisions } from "@cookie-agent/sdk/protocol";
import { createMemoryPair, type Transport } from "@cookie-agent/sdk/rpc";
import { publicArtifactUri } from "./artifact/artifact-uri.ts";
import { createLocalArtifactStore } from "./artifact/local-artifact-store.ts";
import { readArtifact } from "./artifact/read-artifact.ts";
import type { AgentDocument } from "./config/agent-document.ts";
import { readContextDocuments } from "./config/agents-md.ts";
import { CurrentConfig } from "./config/current-config.ts";
import { loadConfig } from "./config/load-config.ts";
import { type TriedPlugin, withTriedPlugin } from "./config/try-plugin.ts";
import { ClientConnection } from "./daemon/client-connection.ts";
import type { Endpoint } from "./daemon/endpoint.ts";
import { Diagnostics } from "./event/diagnostics.ts";
import { PluginBus } from "./event/plugin-bus.ts";
import { createModelRuntime } from "./model/model-runtime.ts";
import { HookChain } from "./plugin/hook-chain.ts";
import { loadFirstParty } from "./plugin/load-manifest.ts";
import { PluginHost } from "./plugin/plugin-host.ts";
import { PluginLogFiles } from "./plugin/plugin-log-files.ts";
import type { AdmissionFacts } from "./run/admit-run.ts";
import { computeRevisions, runtimeSnapshot } from "./run/runtime-snapshot.ts";
import { startJanitor } from "./session/janitor.ts";
import { SessionRegistry } from "./session/session-registry.ts";
import type { TreeBudgets, TreeBudgetsOptions } from "./session/tree-budgets.ts";
import { openLocalSessionStore } from "./store/local-session-store.ts";
import { createLocalUsageArchive } from "./store/local-usage-archive.ts";
import { KeyMutex } from "./support/key-mutex.ts";
import { type Logger, silentLogger } from "./support/logger.ts";
import { ArgumentChecker } from "./tool/check-arguments.ts";
import { OutputHub } from "./tool/output-hub.ts";
import { tellOwnership } from "./tool/plugin-ownership.ts";
import { ToolOwners } from "./tool/tool-owners.ts";

export interface OpenKernelOptions {
  /** The directory that is worked in; its canonical form is the workspace root. */
  readonly cwd: string;
  /** State lives in `<homeDir>/.cookie-agent`. */
  readonly homeDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Moves only sessions and their artifacts. */
  readonly dataDir?: string;
  /** Package folders of the first-party plugins; their tier comes from standing here (E-112). */
  readonly firstPartyDirectories: readonly string[];
  /** Entry file of the shared plugin host, run with this process's own Node. */
  readonly hostEntry: string;
  /** `this_process`: the workspace layer found now is trusted until the kernel closes. */
  readonly trust: "stored" | "this_process";
  /** Nobody can answer: an approval that would ask a person is rejected at once (S-165). */
  readonly headless: boolean;
  readonly engineVersion: string;
  readonly logger?: Logger;
  /** A plugin that this kernel has beside the configured ones, at tier untrusted. */
  readonly tryPlugin?: TriedPlugin;
}

/** A running kernel; everything it does is reached through a client connection. */
export interface Kernel {
  /** What the user should know about how it started, one line each. */
  readonly notices: readonly string[];
  /** A new client connection in memory; the other end is served at once. */
  connect(): Transport;
  /**
   * Opens the endpoint for clients of other processes, on the loopback address and `server.port` unless another one is
   * given; once (D-001). Rejects with `port_in_use`, or for a configured host that is not served.
   */
  listen(options?: { readonly port?: number }): Promise<Pick<Endpoint, "url" | "token">>;
  /** Ends runs with a record, plugins, connections and locks; bounded in time (S 3.7). */
  close(): Promise<void>;
}

/** What crashed writers left behind is looked for once the start is over. */
const SWEEP_DELAY_MS = 5000;

/**
 * Builds the rooms bottom-up and hands out the clients' door. Starts no process but those of plugins that ask to run
 * from the beginning (E-050), and waits for none of them.
 */
export async function openKernel(options: OpenKernelOptions): Promise<Kernel> {
  const logger = options.logger ?? silentLogger;
  const workspaceRoot = await canonicalDirectory(options.cwd);
  const firstParty = await loadFirstParty(options.firstPartyDirectories);
  const load = async (trust: OpenKernelOptions["trust"]) => {
    const read = await loadConfig({
      homeDir: options.homeDir,
      cwd: workspaceRoot,
      env: options.env,
      firstParty,
      trust,
    });
    const { tryPlugin } = options;
    return tryPlugin === undefined
      ? read
      : { ...read, config: withTriedPlugin(read.config, tryPlugin) };
  };
  const loaded = await load(options.trust);
  const current = new CurrentConfig({ loaded, trust: options.trust, load });
  const { config, root } = loaded;
  const pluginLogs = new PluginLogFiles(root, logger);

  const sessionsDir = join(options.dataDir ?? root, "sessions");
  const store = await openLocalSessionStore({
    sessionsDir,
    cwd: workspaceRoot,
    rebuildMetadata: (location) => sessions.rebuildMetadata(location),
  });
  const usageArchive = createLocalUsageArchive({ sessionsDir, directory: store.directory });
  const artifacts = createLocalArtifactStore({ storeDir: store.directory });
  const bus = new PluginBus();
  const diagnostics: Diagnostics = new Diagnostics({
    append: (sessionId, counts) =>
      sessions.record(
        sessionId,
        counts.map((count) => ({ type: "plugin_diagnostic", ...count })),
      ),
    onIncomplete: (plugin) =>
      plugins.diagnose(plugin, "not all of its diagnostics could be recorded before the end"),
  });
  const plugins = await PluginHost.open({
    firstParty,
    entries: config.plugins,
    hostEntry: options.hostEntry,
    root,
    workspaceRoot,
    engineVersion: options.engineVersion,
    env: options.env,
    secretEnvNames: loaded.secretEnvNames,
    logger: pluginLogs,
    workspaceStillTrusted: () => current.workspaceStillTrusted(),
    services: {
      artifacts,
      readArtifact: (context, params) => readArtifact(artifacts, context.rootSessionId, params),
      writeArtifact: async (context, bytes) => {
        const stored = await artifacts.put(context.rootSessionId, bytes);
        return {
          uri: publicArtifactUri(stored.sha256),
          sha256: stored.sha256,
          bytes: stored.byteLength,
        };
      },
      configSection: async (section) => {
        const { describeSection } = await import("./config/describe-section.ts");
        return describeSection(config, section);
      },
      log: (plugin, { level, message, fields }) =>
        pluginLogs.log(level, message, { plugin, ...fields }),
      events: {
        bus,
        append: (sessionId, payload) => sessions.record(sessionId, [payload]),
        note: (sessionId, plugin, kind, message) =>
          diagnostics.note(sessionId, plugin, kind, message),
      },
      toolOwner: (name) => owners.ownerOf(name),
    },
  });

  const owners = new ToolOwners({
    plugins: () => plugins.plugins(),
    revision: () => plugins.revision,
    tools: () => current.tools,
  });

  const models = createModelRuntime({
    providers: config.providers,
    pricing: config.pricing,
    promptCaching: config.promptCaching,
    engineVersion: options.engineVersion,
  });
  const facts: AdmissionFacts = {
    agents: loaded.agents,
    models,
    get config() {
      return { ...config, tools: current.tools };
    },
    workspaceRoot,
    plugins: () => plugins.plugins(),
    revisions: (documents: readonly AgentDocument[]): Revisions =>
      computeRevisions({ models, plugins: () => plugins.plugins() }, documents),
  };
  const hooks = new HookChain(plugins, {
    note: (sessionId, plugin, kind, message) => {
      diagnostics.note(sessionId, plugin, kind, message);
      plugins.diagnose(plugin, `${kind}: ${message}`);
    },
  });
  const outputs = new OutputHub();
  const budgets = await openBudgets({ caps: config.budget, archive: usageArchive, logger });
  const sessions: SessionRegistry = new SessionRegistry({
    facts,
    store,
    ...(budgets && { budgets }),
    headless: options.headless,
    logger,
    ready: async () => {
      await plugins.ready();
      await plugins.activateSession();
    },
    onRecorded: (event) => bus.recorded(event),
    beforeLogsClose: () => diagnostics.drain(),
    contextDocuments: () =>
      config.context.agentsMd
        ? readContextDocuments({
            root,
            workspaceRoot,
            maxBytes: config.context.agentsMdMaxBytes,
            onDiagnostic: (text) => logger.log("warn", text),
          })
        : Promise.resolve([]),
    stages: {
      plugins,
      hooks,
      ownerOf: (name) => owners.ownerOf(name),
      artifacts,
      outputs,
      checker: new ArgumentChecker(),
      keys: new KeyMutex(),
      limits: config.toolOutput,
    },
  });

  const sweep = setTimeout(() => {
    Promise.all([artifacts.sweepTemporaries(), store.sweep()]).catch((error: unknown) => {
      logger.log("warn", "old temporary files could not be removed", { error: String(error) });
    });
  }, SWEEP_DELAY_MS);
  sweep.unref();
  const stopJanitor = startJanitor(
    () => sessions.tidy(),
    (error) => logger.log("warn", "idle sessions and old output stay", { error: String(error) }),
  );

  const clients = new Set<ClientConnection>();
  const statusOf = (status: PluginStatus) => tellOwnership([status], owners.table())[0] ?? status;
  const services = {
    sessions,
    outputs,
    bus,
    usageArchive,
    runtimeSnapshot: async () => {
      await plugins.ready();
      return runtimeSnapshot(facts);
    },
    pluginStatus: () => tellOwnership(plugins.status(), owners.table()),
    restartPlugin: async (plugin: string) => statusOf(await plugins.restart(plugin)),
    reloadPlugin: async (plugin: string) => {
      const { runtime_revision: previous_revision } = runtimeSnapshot(facts);
      await current.reload();
      const status = await plugins.reload(plugin, current);
      const snapshot = runtimeSnapshot(facts);
      for (const client of clients) {
        client.announce({ previous_revision, snapshot, reasons: ["config_reloaded"] });
      }
      return statusOf(status);
    },
  };
  const serve = (transport: Transport, announcesRuntime: boolean) => {
    const client = new ClientConnection(transport, services, { announcesRuntime });
    clients.add(client);
    void client.closed.then(() => clients.delete(client));
  };
  let closing: Promise<void> | null = null;
  let endpoint: Endpoint | null = null;
  return {
    notices: loaded.notices,
    connect() {
      if (closing !== null) throw new CookieError("shutting_down", "the kernel is closing");
      const [near, far] = createMemoryPair();
      serve(far, false);
      return near;
    },
    async listen({ port = config.server.port } = {}) {
      if (endpoint !== null) throw new CookieError("engine", "the kernel listens already");
      const { openEndpoint } = await import("./daemon/endpoint.ts");
      endpoint = await openEndpoint({ port, onClient: (transport) => serve(transport, true) });
      if (closing === null) return endpoint;
      await endpoint.close();
      throw new CookieError("shutting_down", "the kernel is closing");
    },
    close() {
      clearTimeout(sweep);
      stopJanitor();
      closing ??= closeAll([
        () => endpoint?.stopAccepting(),
        () => sessions.close(),
        () => plugins.close(),
        () => pluginLogs.close(),
        () => {
          for (const client of clients) client.close("going_away");
        },
        () => endpoint?.close(),
        () => store.close(),
      ]);
      return closing;
    },
  };
}

/** Loads what counts towards a budget only when there is one. */
async function openBudgets(options: TreeBudgetsOptions): Promise<TreeBudgets | undefined> {
  if (Object.keys(options.caps).length === 0) return undefined;
  const { TreeBudgets } = await import("./session/tree-budgets.ts");
  return new TreeBudgets(options);
}

/** Runs every step whatever the others do, then reports the first failure. */
async function closeAll(steps: readonly (() => Promise<void> | void)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function canonicalDirectory(cwd: string): Promise<string> {
  try {
    return await realpath(cwd);
  } catch (error) {
    throw new CookieError("engine", `the working directory ${cwd} cannot be resolved`, {
      cause: error,
    });
  }
}
