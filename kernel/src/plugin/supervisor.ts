import {
  CookieError,
  type HookName,
  isCookieError,
  type PluginStatus,
} from "@cookie-agent/sdk/protocol";
import { sleep, untilAborted } from "../support/deadline.ts";
import { safeText } from "../support/safe-text.ts";
import { isLasting } from "./handshake.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import { type ConnectionMeans, openConnection } from "./open-connection.ts";
import type { PluginConnection } from "./plugin-connection.ts";
import type { PluginFacts, ResolvedTool } from "./plugin-facts.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import { RestartPolicy } from "./restart-policy.ts";
import type { StartLimiter } from "./start-limiter.ts";
import { NO_CLAIMS, type TierClaims } from "./tier-claims.ts";

export interface SupervisorOptions extends ConnectionMeans {
  readonly engineVersion: string;
  readonly workspaceRoot: string;
  readonly limiter: StartLimiter;
  /** Numbers process starts over all plugins. */
  nextGeneration(): number;
  /** True when starting this plugin costs a process. */
  needsProcess(plugin: LoadedPlugin): boolean;
  /** What the plugin offers may be something else now. */
  onFactsChanged(): void;
}

type State = PluginStatus["state"];

const CANCELLED = "cancelled before the plugin was asked";

/** Keeps one plugin alive on demand: starts, restarts with a growing pause, stops when idle, gives up in the end. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #policy: RestartPolicy;
  readonly #closing = new AbortController();
  #plugin: LoadedPlugin;
  #claims: TierClaims;
  #state: State;
  #reason: string | null = null;
  #connection: PluginConnection | undefined;
  #starting: Promise<PluginConnection> | undefined;
  /** Replaced by `reload`; aborts a start that is under way. */
  #startAbort = new AbortController();
  #awaited = false;
  #starts = 0;
  #droppedEvents = 0;
  #idleSince = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** The end of a process that was idle. */
  #stopping: Promise<void> | undefined;
  /** The last reload, while it is under way. */
  #reloading: Promise<void> | undefined;
  /** What it served before a reload that failed. */
  #held: readonly string[] = [];
  /** A failed plugin that the next use may start again (E-063). */
  #mayRetry = false;

  constructor(plugin: LoadedPlugin, options: SupervisorOptions) {
    this.#options = options;
    this.#plugin = plugin;
    this.#claims = plugin.claims;
    this.#policy = new RestartPolicy(options.limits);
    this.#state = initialState(plugin);
    this.#reason = plugin.failure === null ? null : describe(plugin.failure);
  }

  get plugin(): LoadedPlugin {
    return this.#plugin;
  }

  /** The connection, when a call needs no start. */
  get live(): PluginConnection | undefined {
    return this.#reloading === undefined ? this.running : undefined;
  }

  /** The connection whose calls go on, though a plugin that is being drained takes no new one. */
  get running(): PluginConnection | undefined {
    return this.#connection?.usable ? this.#connection : undefined;
  }

  facts(): PluginFacts {
    const plugin = this.#plugin;
    const dynamic = this.running?.dynamicTools.facts;
    const provides = plugin.manifest?.provides;
    return {
      name: plugin.name,
      tier: plugin.tier,
      version: plugin.manifest?.version ?? null,
      source: plugin.source,
      tools: plugin.enabled ? this.#claims.tools : [],
      instructions: plugin.enabled ? this.#claims.instructions : null,
      manifestDigest: plugin.manifestDigest,
      required: plugin.required,
      diagnostics: plugin.diagnostics,
      ...(dynamic === undefined ? {} : { dynamic }),
      ...(provides === undefined ? {} : { provides }),
      ...(plugin.prewarm === "run" ? { warmsWithRun: true } : {}),
      ...(this.#held.length === 0 ? {} : { held: this.#held }),
    };
  }

  /** The tool of this name as it is now: declared, listed by the running process, or resolved by it. */
  tool(name: string): ResolvedTool | undefined {
    if (!this.#plugin.enabled) return undefined;
    return (
      this.#claims.tools.find(({ declaration }) => declaration.name === name) ??
      this.running?.dynamicTools.find(name)
    );
  }

  status(): PluginStatus {
    const { name, tier, source, activation } = this.#plugin;
    const facts = this.facts();
    return {
      plugin: name,
      state: this.#state,
      reason: this.#reason,
      tools: [...facts.tools, ...(facts.dynamic?.tools ?? [])].map(
        ({ declaration }) => declaration.name,
      ),
      tier,
      version: facts.version,
      source,
      pid: this.#connection?.pid ?? null,
      activation,
      restarts: Math.max(0, this.#starts - 1),
      in_flight: this.#connection?.inFlight ?? 0,
      dropped_events: this.#droppedEvents,
      shadowed: [],
      diagnostics: [...facts.diagnostics],
    };
  }

  /** Whether this plugin is asked at a hook; what a required one declares may be unknown, then it is asked at all. */
  intercepts(hook: HookName): boolean {
    const { enabled, required, source, failure, manifest } = this.#plugin;
    if (!enabled) return false;
    if (this.#claims.intercept.includes(hook)) return true;
    const isUnknown = failure !== null || (manifest === null && this.#claims === NO_CLAIMS);
    return required && source !== "bundled" && isUnknown;
  }

  /** Begins a start without waiting for it; a failure is told to the call that needs the plugin (E-057). */
  warm(): void {
    if (this.#plugin.prewarm === "never" || this.#connection !== undefined) return;
    if (this.#reloading !== undefined) return;
    this.#start().catch(() => undefined);
  }

  /**
   * The connection, started when there is none. Rejects with `plugin_unavailable` and the reason when no process can
   * be had, with `cancelled` when the signal aborts first.
   */
  async connect(signal: AbortSignal): Promise<PluginConnection> {
    const live = this.live;
    if (live !== undefined) return live;
    if (signal.aborted) throw new CookieError("cancelled", CANCELLED);
    while (this.#reloading !== undefined) await untilAborted(this.#reloading, signal, CANCELLED);
    // A process that is just dying counts as a crash first, else the rules for restarts would be passed by.
    const dying = this.#starting === undefined ? this.#connection : undefined;
    if (dying !== undefined) await untilAborted(dying.lost, signal, CANCELLED);
    this.#awaited = true;
    return untilAborted(this.#start(), signal, CANCELLED);
  }

  /**
   * Ends the process and takes the plugin as it is now; nothing of an earlier failure is kept (B152). Calls that run
   * have `drainMs` to finish, new ones wait for what comes (E-064).
   */
  async reload(plugin: LoadedPlugin, drainMs = 0): Promise<void> {
    const before = this.#reloading;
    const reloading = (async () => {
      await before;
      await this.#swap(plugin, drainMs);
    })();
    this.#reloading = reloading;
    await reloading.finally(() => {
      if (this.#reloading === reloading) this.#reloading = undefined;
    });
  }

  async #swap(plugin: LoadedPlugin, drainMs: number): Promise<void> {
    if (drainMs > 0) await this.running?.drain(drainMs);
    const served = this.facts().tools.map(({ declaration }) => declaration.name);
    await this.#endProcess();
    this.#held = heldNames(plugin, [...this.#held, ...served]);
    this.#plugin = plugin;
    this.#claims = plugin.claims;
    this.#policy.reset();
    this.#mayRetry = false;
    this.#state = initialState(plugin);
    this.#reason = plugin.failure === null ? null : describe(plugin.failure);
    this.#options.onFactsChanged();
  }

  /** After it resolves no process of this plugin is left and none is started again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#endProcess();
  }

  #start(): Promise<PluginConnection> {
    if (this.#starting !== undefined) return this.#starting;
    const refusal = this.#refusal();
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#state = "connecting";
    this.#startAbort = new AbortController();
    const starting = this.#run(this.#startAbort.signal).finally(() => {
      this.#starting = undefined;
      this.#awaited = false;
    });
    this.#starting = starting;
    return starting;
  }

  #refusal(): CookieError | undefined {
    if (this.#closing.signal.aborted) {
      return new CookieError("shutting_down", "the kernel is closing");
    }
    if (!this.#plugin.enabled) return this.#unavailable("it is disabled in the configuration");
    if (this.#state === "failed" && !this.#mayRetry) {
      return this.#unavailable(this.#reason ?? "it failed");
    }
    return undefined;
  }

  async #run(signal: AbortSignal): Promise<PluginConnection> {
    const delayMs = this.#policy.delayMs(performance.now());
    try {
      if (delayMs > 0 && !(await sleep(delayMs, signal))) throw stopped();
      const open = () => this.#open(signal);
      const connection = this.#options.needsProcess(this.#plugin)
        ? await this.#options.limiter.run(open, () => this.#awaited)
        : await open();
      this.#state = "connected";
      this.#reason = null;
      this.#touch();
      return connection;
    } catch (error) {
      if (signal.aborted) throw stopped();
      this.#noteFailure(error, true);
      throw this.#unavailable(describe(error));
    }
  }

  async #open(signal: AbortSignal): Promise<PluginConnection> {
    if (signal.aborted) throw stopped();
    const { directories, engineVersion, workspaceRoot } = this.#options;
    const plugin = this.#plugin;
    const startedMs = performance.now();
    this.#starts += 1;
    const { connection, paths } = await openConnection(
      this.#options,
      {
        plugin,
        generation: this.#options.nextGeneration(),
        onIdle: () => this.#touch(),
        onDropped: () => {
          this.#droppedEvents += 1;
        },
        onToolsChanged: () => this.#options.onFactsChanged(),
      },
      signal,
    );
    this.#connection = connection;
    const onAbort = () => void connection.abandon("stopped while it was starting");
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    const remainingMs = plugin.startupTimeoutMs - (performance.now() - startedMs);
    try {
      this.#claims = await connection.initialize({
        engineVersion,
        paths: { workspace: workspaceRoot, ...paths },
        timeoutMs: Math.max(1, remainingMs),
      });
    } catch (error) {
      await connection.abandon(describe(error));
      await directories.removeScratch(paths.scratch);
      if (this.#connection === connection) this.#connection = undefined;
      if (plugin.manifest === null) this.#claims = NO_CLAIMS;
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    this.#options.onFactsChanged();
    void connection.lost.then(async (error) => {
      this.#onLost(connection, error);
      await directories.removeScratch(paths.scratch);
    });
    return connection;
  }

  #onLost(connection: PluginConnection, error: CookieError): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
    // Without a manifest nothing is known of a plugin that is not there (E-060).
    if (this.#plugin.manifest === null) this.#claims = NO_CLAIMS;
    this.#options.onFactsChanged();
    if (!isCookieError(error, "plugin_crashed")) {
      this.#state = "disconnected";
      return;
    }
    this.#noteFailure(error, false);
  }

  /** A start that failed is `failed` at once, a crash only when it was the last one allowed (E-063). */
  #noteFailure(error: unknown, whileStarting: boolean): void {
    const nowMs = performance.now();
    this.#policy.recordCrash(nowMs);
    const exhausted = this.#policy.exhausted(nowMs);
    const mayRestart = this.#plugin.restart === "on_demand" && !isLasting(error);
    this.#mayRetry = mayRestart && !exhausted;
    this.#reason = mayRestart && exhausted ? givenUp(error, this.#options.limits) : describe(error);
    this.#state = whileStarting || !this.#mayRetry ? "failed" : "disconnected";
  }

  /** Marks the last moment of use; one timer at most looks at it later. */
  #touch(): void {
    this.#idleSince = performance.now();
    const { activation, idleMs } = this.#plugin;
    if (activation !== "tool" || idleMs === 0) return;
    this.#idleTimer ??= setTimeout(() => this.#checkIdle(), idleMs).unref();
  }

  #checkIdle(): void {
    this.#idleTimer = undefined;
    const connection = this.#connection;
    // A busy plugin arms the timer again when it becomes idle.
    if (connection === undefined || !connection.idle) return;
    const leftMs = this.#plugin.idleMs - (performance.now() - this.#idleSince);
    if (leftMs > 1) {
      this.#idleTimer = setTimeout(() => this.#checkIdle(), leftMs).unref();
      return;
    }
    this.#connection = undefined;
    this.#state = "disconnected";
    this.#stopping = connection.stop();
  }

  async #endProcess(): Promise<void> {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
    this.#startAbort.abort(stopped());
    await this.#starting?.catch(() => undefined);
    const connection = this.#connection;
    this.#connection = undefined;
    await Promise.all([this.#stopping, connection?.stop()]);
    if (this.#state === "connected" || this.#state === "connecting") this.#state = "disconnected";
  }

  #unavailable(reason: string): CookieError {
    return new CookieError(
      "plugin_unavailable",
      `the plugin ${this.#plugin.name} is not available: ${reason}`,
      { data: { plugin: this.#plugin.name } },
    );
  }
}

/** A plugin that was swapped for a broken one does not give its names away (B136). */
function heldNames({ enabled, failure }: LoadedPlugin, names: readonly string[]): string[] {
  return enabled && failure !== null ? [...new Set(names)] : [];
}

function initialState(plugin: LoadedPlugin): State {
  if (!plugin.enabled) return "disabled";
  return plugin.failure === null ? "disconnected" : "failed";
}

function describe(error: unknown): string {
  if (!isCookieError(error)) return "internal error";
  return safeText(`${error.code}: ${error.message}`, 1024);
}

/** The last words of the process are in the error of the crash (B145). */
function givenUp(error: unknown, { crashes, crashWindowMs }: PluginLimits): string {
  const minutes = Math.round(crashWindowMs / 60_000);
  return `given up after ${crashes} crashes in ${minutes} minutes; mend it, then restart it; the last: ${describe(error)}`;
}

function stopped(): CookieError {
  return new CookieError("shutting_down", "the plugin was stopped while it was starting");
}
