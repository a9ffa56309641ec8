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
import { withDeadline } from "../support/deadline.ts";
import type { HookFacts, HookPlugins, HookSite, Interceptor } from "./hook-site.ts";
import type { PluginCall, Prepared, PrepareParams } from "./plugin-call.ts";
import type { PluginConnection } from "./plugin-connection.ts";
import type { PluginFacts, ResolvedTool } from "./plugin-facts.ts";
import { PluginRoster, type PluginRosterOptions, type ReloadedConfig } from "./plugin-roster.ts";
import type { ServiceRequest } from "./service-request.ts";

/** The kernel's side of all plugins: what they offer, whether they run, and every request to them. */
export class PluginHost implements HookPlugins {
  readonly #roster: PluginRoster;

  private constructor(roster: PluginRoster) {
    this.#roster = roster;
  }

  /**
   * Reads all manifests and starts the plugins that want to run from the beginning, without waiting for them. A
   * plugin that cannot be used is a status, never a rejection (E-045).
   */
  static async open(options: PluginRosterOptions): Promise<PluginHost> {
    return new PluginHost(await PluginRoster.open(options));
  }

  /** First-party plugins, then entries in configuration order (E-042). */
  plugins(): readonly PluginFacts[] {
    return this.#roster.all().map((supervisor) => supervisor.facts());
  }

  /** Changes whenever `plugins` may answer something else. */
  get revision(): number {
    return this.#roster.revision;
  }

  /** The tool of this name that the plugin has now, whatever it was when a run pinned it. */
  currentTool(plugin: string, name: string): ResolvedTool | undefined {
    return this.#roster.find(plugin)?.tool(name);
  }

  /** Asks the plugin that claims a name for its tool; null: it has none (E-133). */
  async resolveTool(
    plugin: string,
    name: string,
    signal: AbortSignal,
  ): Promise<ResolvedTool | null> {
    const live = this.#roster.find(plugin)?.live;
    if (live !== undefined) return live.resolveTool(name, signal);
    throw new CookieError(
      "plugin_unavailable",
      `${name} cannot run: the process of the plugin ${plugin}, which claimed it, has ended`,
    );
  }

  status(): PluginStatus[] {
    return this.#roster.all().map((supervisor) => supervisor.status());
  }

  /** Resolves when every startup plugin is connected or failed; bounded by their startup timeouts (E-050). */
  ready(): Promise<void> {
    return this.#roster.ready();
  }

  /** Starts the plugins with activation `session`; resolves when each is connected or failed (E-051). */
  activateSession(): Promise<void> {
    return this.#roster.activateSession();
  }

  /** Begins to start a plugin that will probably be called (E-057). Silent and immediate. */
  warm(plugin: string): void {
    this.#roster.find(plugin)?.warm();
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
    if (prepared.length > 0) this.#roster.find(plugin)?.running?.discard(prepared);
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
      const retrySafe = this.currentTool(plugin, call.params.tool)?.retrySafe === true;
      if (!died || !repeatable || !retrySafe) throw error;
      const next = await this.#connect(plugin, signal);
      return next.call(watched, signal);
    }
  }

  /**
   * Forwards a request to the plugin that provides its service, started when it is not running (E-122). Rejects with
   * the plugin's error, `plugin_unavailable` when nobody provides the service, `timeout` or `cancelled`.
   */
  async serve(request: ServiceRequest, signal: AbortSignal): Promise<JsonObject> {
    const provider = this.#roster
      .all()
      .find(({ plugin }) => plugin.enabled && plugin.manifest?.provides?.includes(request.service));
    if (provider === undefined) {
      throw new CookieError("plugin_unavailable", `no plugin provides ${request.service}`);
    }
    return (await this.#connect(provider.plugin.name, signal)).serve(request, signal);
  }

  interceptors(hook: HookName): readonly Interceptor[] {
    const asked: Interceptor[] = [];
    for (const supervisor of this.#roster.all()) {
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
    const supervisor = this.#roster.get(plugin);
    const { startupTimeoutMs } = supervisor.plugin;
    // A plugin that waits to be started again must not hold up what it looks at for longer than a start (E-051).
    const connection =
      supervisor.live ??
      (await withDeadline(
        supervisor.connect(signal),
        startupTimeoutMs,
        "the plugin did not start in time",
      ));
    return connection.intercept(hook, request, signal);
  }

  /** Feeds a running call that was started with `stdin: true`; false when it takes no input (any more) (E-106). */
  async stdin(
    plugin: string,
    invocationId: ToolCallId,
    data: Uint8Array | null,
    eof: boolean,
  ): Promise<boolean> {
    const connection = this.#roster.find(plugin)?.running;
    return connection === undefined ? false : connection.stdin(invocationId, data, eof);
  }

  /** Adds a sentence to a plugin's status record. */
  diagnose(plugin: string, text: string): void {
    this.#roster.find(plugin)?.plugin.subject.diagnose(text);
  }

  /** Reads the plugin's files anew and starts it; earlier failures are forgotten (B152). */
  restart(plugin: string): Promise<PluginStatus> {
    return this.#roster.restart(plugin);
  }

  /**
   * Takes one plugin from the configuration as it is now (E-064). Rejects with `plugin_missing` when neither the
   * configuration nor the kernel knows the name.
   */
  reload(plugin: string, config: ReloadedConfig): Promise<PluginStatus> {
    return this.#roster.reload(plugin, config);
  }

  /** Ends every plugin within the largest grace period and 6 s (E-065); no process is left. Idempotent. */
  close(): Promise<void> {
    return this.#roster.close();
  }

  #connect(plugin: string, signal: AbortSignal): PluginConnection | Promise<PluginConnection> {
    const supervisor = this.#roster.get(plugin);
    return supervisor.live ?? supervisor.connect(signal);
  }
}

function checkGeneration(connection: PluginConnection, generation: number | null): void {
  if (generation === null || generation === connection.generation) return;
  throw new CookieError(
    "prepared_capability_lost",
    "the plugin process that prepared this call has ended; prepare it again",
  );
}
