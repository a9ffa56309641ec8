import { CookieError, type PluginStatus } from "@cookie-agent/sdk/protocol";
import type { FirstPartyFacts } from "../config/first-party.ts";
import type { PluginEntry } from "../config/plugin-entry.ts";
import { KeyMutex } from "../support/key-mutex.ts";
import type { Logger } from "../support/logger.ts";
import { safeText } from "../support/safe-text.ts";
import type { HostServices } from "./host-services.ts";
import { loadPlugin, loadPlugins, type PluginSource, pluginSources } from "./load-plugins.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import { PluginDirectories } from "./plugin-directories.ts";
import { PluginLauncher } from "./plugin-launcher.ts";
import { PLUGIN_LIMITS, type PluginLimits } from "./plugin-limits.ts";
import { StartLimiter } from "./start-limiter.ts";
import { Supervisor } from "./supervisor.ts";

export interface PluginRosterOptions {
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
export type ReloadedConfig = Pick<PluginRosterOptions, "entries" | "secretEnvNames">;

/** The plugins that there are, in the order of the configuration, from the kernel's start through each change to its end. */
export class PluginRoster {
  #options: PluginRosterOptions;
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

  private constructor(options: PluginRosterOptions) {
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

  /** Reads all manifests and begins to start what is to run from the beginning. A plugin that cannot be used is in it. */
  static async open(options: PluginRosterOptions): Promise<PluginRoster> {
    const roster = new PluginRoster(options);
    for (const plugin of await loadPlugins(options))
      roster.#add(await roster.#launcher.checkTrust(plugin));
    roster.#startup = roster.#startAll("startup");
    return roster;
  }

  /** Changes whenever a plugin may offer something else. */
  get revision(): number {
    return this.#revision;
  }

  /** First-party plugins, then entries in configuration order (E-042). */
  all(): readonly Supervisor[] {
    return [...this.#supervisors.values()];
  }

  find(plugin: string): Supervisor | undefined {
    return this.#supervisors.get(plugin);
  }

  /** Throws `plugin_unavailable` for a name that nobody has. */
  get(plugin: string): Supervisor {
    const supervisor = this.#supervisors.get(plugin);
    if (supervisor !== undefined) return supervisor;
    throw new CookieError("plugin_unavailable", `no plugin is called ${plugin}`, {
      data: { plugin },
    });
  }

  /** Resolves when every startup plugin is connected or failed; bounded by their startup timeouts (E-050). */
  async ready(): Promise<void> {
    await this.#startup;
  }

  /** Starts the plugins with activation `session`; resolves when each is connected or failed (E-051). */
  async activateSession(): Promise<void> {
    await this.#startAll("session");
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
    return this.get(plugin);
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
