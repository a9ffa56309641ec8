import {
  CookieError,
  type HookName,
  type HookResult,
  isCookieError,
  type JsonObject,
  type PluginStatus,
  type ToolCallId,
  type ToolCallResult,
} from "@cookie-agent/sdk/protocol";
import type { FirstPartyFacts } from "../config/first-party.ts";
import type { PluginEntry } from "../config/plugin-entry.ts";
import { withDeadline } from "../support/deadline.ts";
import { KeyMutex } from "../support/key-mutex.ts";
import type { Logger } from "../support/logger.ts";
import { safeText } from "../support/safe-text.ts";
import type { HookFacts, HookPlugins, HookSite, Interceptor } from "./hook-site.ts";
import type { HostServices } from "./host-services.ts";
import { loadPlugin, loadPlugins, type PluginSource, pluginSources } from "./load-plugins.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { PluginCall, Prepared, PrepareParams } from "./plugin-call.ts";
import type { PluginConnection } from "./plugin-connection.ts";
import { PluginDirectories } from "./plugin-directories.ts";
import type { PluginFacts, ResolvedTool } from "./plugin-facts.ts";
import { PluginLauncher } from "./plugin-launcher.ts";
import { PLUGIN_LIMITS, type PluginLimits } from "./plugin-limits.ts";
import type { ServiceRequest } from "./service-request.ts";
import { StartLimiter } from "./start-limiter.ts";
import { Supervisor } from "./supervisor.ts";

export interface PluginHostOptions {
  /** In configuration order, before every entry. */
  readonly firstParty: readonly FirstPartyFacts[];
  readonly entries: readonly PluginEntry[];
  /** Entry file of the shared plugin host. */
  readonly hostEntry: string;
  /** `~/.cookie-agent`. */
  readonly root: string;
  readonly workspaceRoot: string;
  readonly engineVersion: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names that no child inherits (E-046). */
  readonly secretEnvNames: ReadonlySet<string>;
  readonly services: HostServices;
  readonly logger: Logger;
  /** Other times and sizes than those of the specification. */
  readonly limits?: Partial<PluginLimits>;
  /** True while the workspace layer is what was trusted; asked before each start of a program it names (C-234). */
  workspaceStillTrusted(): Promise<boolean>;
}

/** What a reload takes from the configuration. */
export type ReloadedConfig = Pick<PluginHostOptions, "entries" | "secretEnvNames">;

/** The kernel's side of all plugins: what they offer, whether they run, and every request to them. */
export class PluginHost implements HookPlugins {
  #options: PluginHostOptions;
  readonly #limits: PluginLimits;
  readonly #limiter: StartLimiter;
  readonly #directories: PluginDirectories;
  readonly #supervisors = new Map<string, Supervisor>();
  readonly #launcher: PluginLauncher;
  readonly #changes = new KeyMutex();
  readonly #forever = new AbortController();
  #generation = 0;
  #revision = 0;
  #startup: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  private constructor(options: PluginHostOptions) {
    this.#options = options;
    this.#limits = { ...PLUGIN_LIMITS, ...options.limits };
    this.#limiter = new StartLimiter(this.#limits.parallelStarts);
    this.#directories = new PluginDirectories(options.root);
    this.#launcher = new PluginLauncher({
      hostEntry: options.hostEntry,
      workspaceRoot: options.workspaceRoot,
      logger: options.logger,
      limits: this.#limits,
      environment: () => this.#options,
      workspaceStillTrusted: () => options.workspaceStillTrusted(),
    });
  }

  /**
   * Reads all manifests and starts the plugins that want to run from the beginning, without waiting for them. A
   * plugin that cannot be used is a status, never a rejection (E-045).
   */
  static async open(options: PluginHostOptions): Promise<PluginHost> {
    const host = new PluginHost(options);
    for (const plugin of await loadPlugins(options))
      host.#add(await host.#launcher.checkTrust(plugin));
    host.#startup = host.#startAll("startup");
    return host;
  }

  /** First-party plugins, then entries in configuration order (E-042). */
  plugins(): readonly PluginFacts[] {
    return [...this.#supervisors.values()].map((supervisor) => supervisor.facts());
  }

  /** Changes whenever `plugins` may answer something else. */
  get revision(): number {
    return this.#revision;
  }

  /** The tool of this name that the plugin has now, whatever it was when a run pinned it. */
  currentTool(plugin: string, name: string): ResolvedTool | undefined {
    return this.#supervisors.get(plugin)?.tool(name);
  }

  /** Asks the plugin that claims a name for its tool; null: it has none (E-133). */
  async resolveTool(
    plugin: string,
    name: string,
    signal: AbortSignal,
  ): Promise<ResolvedTool | null> {
    const live = this.#supervisors.get(plugin)?.live;
    if (live !== undefined) return live.resolveTool(name, signal);
    throw new CookieError(
      "plugin_unavailable",
      `${name} cannot run: the process of the plugin ${plugin}, which claimed it, has ended`,
    );
  }

  status(): PluginStatus[] {
    return [...this.#supervisors.values()].map((supervisor) => supervisor.status());
  }

  /** Resolves when every startup plugin is connected or failed; bounded by their startup timeouts (E-050). */
  async ready(): Promise<void> {
    await this.#startup;
  }

  /** Starts the plugins with activation `session`; resolves when each is connected or failed (E-051). */
  async activateSession(): Promise<void> {
    await this.#startAll("session");
  }

  /** Begins to start a plugin that will probably be called (E-057). Silent and immediate. */
  warm(plugin: string): void {
    this.#supervisors.get(plugin)?.warm();
  }

  /** Asks a tool with dynamic preparation; may be called speculatively and more than once (E-084). */
  async prepare(plugin: string, params: PrepareParams, signal: AbortSignal): Promise<Prepared> {
    const connection = await this.#connect(plugin, signal);
    return connection.prepare(params, signal);
  }

  /** Rejects with `operation_changed` when what was prepared no longer holds (E-088). */
  async revalidate(
    plugin: string,
    token: {
      readonly invocationId: ToolCallId;
      readonly prepared: string;
      readonly generation: number;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const connection = await this.#connect(plugin, signal);
    checkGeneration(connection, token.generation);
    return connection.revalidate(token.invocationId, token.prepared, signal);
  }

  /** Gives unused tokens back; those of a dead process are gone already. */
  discard(plugin: string, prepared: string[]): void {
    if (prepared.length > 0) this.#supervisors.get(plugin)?.running?.discard(prepared);
  }

  /**
   * Runs one call. Rejects with the tool's own error or with `cancelled`, `timeout`, `progress_limit`,
   * `protocol_violation`, `plugin_crashed`, `plugin_unavailable`, `prepared_capability_lost`, `busy`, or what
   * `onProgress` rejected with. After it settled no further progress is delivered.
   */
  async call(plugin: string, call: PluginCall, signal: AbortSignal): Promise<ToolCallResult> {
    let captured = false;
    const watched: PluginCall = {
      ...call,
      onProgress: (news) => {
        captured = true;
        return call.onProgress(news);
      },
    };
    const connection = await this.#connect(plugin, signal);
    checkGeneration(connection, call.generation);
    try {
      return await connection.call(watched, signal);
    } catch (error) {
      const died = isCookieError(error, "plugin_crashed") && !connection.usable;
      const repeatable = call.generation === null && !captured && !signal.aborted;
      if (!died || !repeatable || !this.#isRetrySafe(plugin, call.params.tool)) throw error;
      const next = await this.#connect(plugin, signal);
      return next.call(watched, signal);
    }
  }

  /**
   * Forwards a request to the plugin that provides its service, started when it is not running (E-122). Rejects with
   * the plugin's error, `plugin_unavailable` when nobody provides the service, `timeout` or `cancelled`.
   */
  async serve(request: ServiceRequest, signal: AbortSignal): Promise<JsonObject> {
    const provider = [...this.#supervisors.values()].find(
      ({ plugin }) => plugin.enabled && plugin.manifest?.provides?.includes(request.service),
    );
    if (provider === undefined) {
      throw new CookieError("plugin_unavailable", `no plugin provides ${request.service}`);
    }
    return (await this.#connect(provider.plugin.name, signal)).serve(request, signal);
  }

  interceptors(hook: HookName): readonly Interceptor[] {
    const asked: Interceptor[] = [];
    for (const supervisor of this.#supervisors.values()) {
      if (!supervisor.intercepts(hook)) continue;
      const { name: plugin, required } = supervisor.plugin;
      asked.push({ plugin, required });
    }
    return asked;
  }

  async intercept<H extends HookName>(
    plugin: string,
    hook: H,
    request: { readonly site: HookSite; readonly facts: HookFacts<H> },
    signal: AbortSignal,
  ): Promise<HookResult<H> | undefined> {
    const { live, plugin: loaded } = this.#supervisor(plugin);
    // A plugin that waits to be started again must not hold up what it looks at for longer than a start (E-051).
    const started = async () => {
      const starting = Promise.resolve(this.#connect(plugin, signal));
      return withDeadline(starting, loaded.startupTimeoutMs, "the plugin did not start in time");
    };
    return (live ?? (await started())).intercept(hook, request, signal);
  }

  /** Feeds a running call that was started with `stdin: true`; false when it takes no input (any more) (E-106). */
  async stdin(
    plugin: string,
    invocationId: ToolCallId,
    data: Uint8Array | null,
    eof: boolean,
  ): Promise<boolean> {
    const connection = this.#supervisors.get(plugin)?.running;
    return connection === undefined ? false : connection.stdin(invocationId, data, eof);
  }

  /** Reads the plugin's files anew and starts it; earlier failures are forgotten (B152). */
  async restart(plugin: string): Promise<PluginStatus> {
    const supervisor = await this.#oneByOne(plugin, async () => {
      const known = this.#supervisors.get(plugin);
      if (known === undefined) throw missing(plugin);
      const source = pluginSources(this.#options).find(({ name }) => name === plugin);
      if (source !== undefined) await known.reload(await this.#load(source));
      return known;
    });
    await supervisor.connect(this.#forever.signal).catch(() => undefined);
    return supervisor.status();
  }

  /** Adds a sentence to a plugin's status record. */
  diagnose(plugin: string, text: string): void {
    this.#supervisors.get(plugin)?.plugin.subject.diagnose(text);
  }

  /**
   * Takes one plugin from the configuration as it is now: drained, then started as it is (E-064). One that is new is
   * added, one that is named no more ends. A plugin that cannot be used afterwards is a status, and its tools stay its
   * own (B136). Rejects with `plugin_missing` when neither the configuration nor the kernel knows the name.
   */
  async reload(plugin: string, config: ReloadedConfig): Promise<PluginStatus> {
    const changed = await this.#oneByOne(plugin, () => this.#change(plugin, config));
    if (!(changed instanceof Supervisor)) return changed;
    await changed.connect(this.#forever.signal).catch(() => undefined);
    return changed.status();
  }

  /** The plugin as it is now, not started yet; the last status of one that is named no more. */
  async #change(plugin: string, config: ReloadedConfig): Promise<Supervisor | PluginStatus> {
    const fresh = config.entries.find(({ name }) => name === plugin);
    const kept = this.#options.entries.filter(({ name }) => name !== plugin);
    this.#options = {
      ...this.#options,
      entries: inOrderOf(config.entries, fresh === undefined ? kept : [...kept, fresh]),
      secretEnvNames: config.secretEnvNames,
    };
    const source = pluginSources(this.#options).find(({ name }) => name === plugin);
    if (source === undefined) return this.#remove(plugin);
    const loaded = await this.#load(source);
    const known = this.#supervisors.get(plugin);
    if (known === undefined) this.#add(loaded);
    else await known.reload(loaded, this.#limits.drainMs);
    this.#sort();
    return this.#supervisor(plugin);
  }

  /** Two changes of one plugin at once would leave a process that nobody ends, or the configuration before. */
  async #oneByOne<T>(plugin: string, change: () => Promise<T>): Promise<T> {
    const release = await this.#changes.acquire([plugin]);
    try {
      return await change();
    } finally {
      release();
    }
  }

  /** Rejects with `shutting_down` once nothing may be started any more. */
  async #load(source: PluginSource): Promise<LoadedPlugin> {
    const loaded = await this.#launcher.checkTrust(await loadPlugin(source, this.#options));
    if (this.#closed === undefined) return loaded;
    throw new CookieError("shutting_down", "the kernel is closing");
  }

  async #remove(plugin: string): Promise<PluginStatus> {
    const supervisor = this.#supervisors.get(plugin);
    if (supervisor === undefined) throw missing(plugin);
    await supervisor.reload({ ...supervisor.plugin, enabled: false }, this.#limits.drainMs);
    await supervisor.close();
    this.#supervisors.delete(plugin);
    this.#revision += 1;
    return { ...supervisor.status(), reason: "the configuration does not name it any more" };
  }

  /** The order of the configuration is that of hooks and of names that two plugins have (E-042). */
  #sort(): void {
    const supervisors = new Map(this.#supervisors);
    this.#supervisors.clear();
    for (const { name } of pluginSources(this.#options)) {
      const supervisor = supervisors.get(name);
      if (supervisor !== undefined) this.#supervisors.set(name, supervisor);
    }
    // One that is named no more goes when it is drained.
    for (const [name, supervisor] of supervisors) this.#supervisors.set(name, supervisor);
    this.#revision += 1;
  }

  /** Ends every plugin within the largest grace period and 6 s (E-065); no process is left. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.close()));
    this.#launcher.close();
    await this.#directories.close().catch(() => undefined);
  }

  #add(plugin: LoadedPlugin): void {
    const { engineVersion, workspaceRoot, services } = this.#options;
    const supervisor = new Supervisor(plugin, {
      engineVersion,
      workspaceRoot,
      services,
      limits: this.#limits,
      limiter: this.#limiter,
      directories: this.#directories,
      nextGeneration: () => {
        this.#generation += 1;
        return this.#generation;
      },
      needsProcess: (current) => this.#launcher.needsProcess(current),
      openRoute: (current, signal) => this.#launcher.open(current, signal),
      onFactsChanged: () => {
        this.#revision += 1;
      },
    });
    this.#supervisors.set(plugin.name, supervisor);
    this.#revision += 1;
  }

  async #startAll(activation: "startup" | "session"): Promise<void> {
    const due = [...this.#supervisors.values()].filter(
      ({ plugin }) => plugin.activation === activation && plugin.enabled && plugin.failure === null,
    );
    await Promise.allSettled(due.map((supervisor) => supervisor.connect(this.#forever.signal)));
  }

  #connect(plugin: string, signal: AbortSignal): PluginConnection | Promise<PluginConnection> {
    const supervisor = this.#supervisor(plugin);
    return supervisor.live ?? supervisor.connect(signal);
  }

  #supervisor(plugin: string): Supervisor {
    const supervisor = this.#supervisors.get(plugin);
    if (supervisor !== undefined) return supervisor;
    throw new CookieError("plugin_unavailable", `no plugin is called ${plugin}`, {
      data: { plugin },
    });
  }

  #isRetrySafe(plugin: string, tool: string): boolean {
    const { tools } = this.#supervisor(plugin).facts();
    return tools.find(({ declaration }) => declaration.name === tool)?.retrySafe === true;
  }
}

function missing(plugin: string): CookieError {
  return new CookieError("plugin_missing", `no plugin is called ${safeText(plugin, 128)}`);
}

/** Entries that the new order does not name go last, as they stood. */
function inOrderOf(order: readonly PluginEntry[], entries: readonly PluginEntry[]): PluginEntry[] {
  const places = new Map(order.map(({ name }, index) => [name, index]));
  const placeOf = ({ name }: PluginEntry) => places.get(name) ?? order.length;
  return [...entries].sort((a, b) => placeOf(a) - placeOf(b));
}

function checkGeneration(connection: PluginConnection, generation: number | null): void {
  if (generation === null || generation === connection.generation) return;
  throw new CookieError(
    "prepared_capability_lost",
    "the plugin process that prepared this call has ended; prepare it again",
  );
}
