import {
  CookieError,
  type Digest,
  type HookName,
  type HookResult,
  type HostGrant,
  isCookieError,
  type JsonObject,
  PluginPing,
  PluginShutdown,
  ServiceCall,
  type ToolCallId,
  type ToolCallResult,
  ToolsDiscard,
  ToolsPrepare,
  ToolsResolve,
  ToolsRevalidate,
} from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { sleep } from "../support/deadline.ts";
import { safeText } from "../support/safe-text.ts";
import { askHook } from "./ask-hook.ts";
import { checkPrepared } from "./check-prepared.ts";
import { ContextGrants } from "./context-grants.ts";
import { DynamicTools } from "./dynamic-tools.ts";
import { type EventTraffic, openEventTraffic } from "./event-traffic.ts";
import { type HandshakeFacts, shakeHands } from "./handshake.ts";
import type { HookFacts, HookSite } from "./hook-site.ts";
import { type CallContext, type HostServices, SERVED_GRANTS } from "./host-services.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { PluginCall, Prepared, PrepareParams } from "./plugin-call.ts";
import type { ResolvedTool } from "./plugin-facts.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import { crashError } from "./plugin-process.ts";
import type { PluginRoute } from "./plugin-route.ts";
import { callContext, prepareContext, serviceContext } from "./request-contexts.ts";
import { RequestDesk } from "./request-desk.ts";
import { RequestSlots } from "./request-slots.ts";
import { RunningCalls } from "./running-calls.ts";
import { serveEmit } from "./serve-emit.ts";
import { serveHostRequests } from "./serve-host-requests.ts";
import { serveToolList } from "./serve-tool-list.ts";
import type { ServiceRequest } from "./service-request.ts";
import type { TierClaims } from "./tier-claims.ts";

export interface PluginConnectionOptions {
  readonly plugin: LoadedPlugin;
  readonly route: PluginRoute;
  /** Number of this start; prepared tokens belong to it. */
  readonly generation: number;
  readonly services: HostServices;
  readonly limits: PluginLimits;
  /** The last open request was answered. */
  onIdle(): void;
  /** The plugin will not get an event that it subscribed to. */
  onDropped(): void;
  /** The process replaced its list of dynamic tools, or took it along (E-131, E-135). */
  onToolsChanged(): void;
}

/** One plugin in one process: its requests, its running calls and its rights, until either side ends it. */
export class PluginConnection {
  readonly generation: number;
  readonly dynamicTools: DynamicTools;
  /** Resolves with the error of everyone who waits, once the connection and its process are gone. */
  readonly lost: Promise<CookieError>;
  readonly #options: PluginConnectionOptions;
  readonly #rpc: Connection;
  readonly #slots: RequestSlots;
  readonly #desk: RequestDesk;
  readonly #grants = new ContextGrants();
  readonly #calls: RunningCalls;
  #claims: TierClaims | undefined;
  #traffic: EventTraffic | undefined;
  #scratch = "";
  /** Ends the wait for open requests. */
  #quiet: AbortController | undefined;
  #stopping = false;
  #ended = false;

  constructor(options: PluginConnectionOptions) {
    const { plugin, route, limits, services } = options;
    this.#options = options;
    this.generation = options.generation;
    this.#slots = new RequestSlots(plugin.maxInFlight, limits.queuedRequests);
    this.#rpc = new Connection({
      transport: route.transport,
      side: "kernel",
      servesReadersOnly: true,
      onClose: () => this.#onClosed(),
      onProtocolError: (error) => this.#diagnose(safeText(error.message, 256)),
    });
    this.#desk = new RequestDesk({
      rpc: this.#rpc,
      slots: this.#slots,
      grants: this.#grants,
      limits,
      onDeaf: (abandoned) => void this.#onDeaf(abandoned),
      onIdle: () => {
        this.#quiet?.abort();
        if (!this.#stopping) options.onIdle();
      },
    });
    serveHostRequests(this.#rpc, {
      plugin: plugin.name,
      tier: plugin.tier,
      grants: this.#grants,
      services,
      initialized: () => this.#claims !== undefined,
      isGranted: (service) => this.#isGranted(service),
      kernelConfig: () => this.#claims?.kernelConfig ?? [],
      scratch: () => this.#scratch,
    });
    serveEmit(this.#rpc, () => this.#traffic?.publish);
    this.dynamicTools = new DynamicTools({
      plugin,
      intervalMs: limits.toolListIntervalMs,
      ownerOf: (name) => services.toolOwner(name),
      onChange: () => options.onToolsChanged(),
    });
    serveToolList(this.#rpc, {
      tools: this.dynamicTools,
      initialized: () => this.#claims !== undefined,
      isGranted: () => this.#claims?.dynamicTools === true,
    });
    this.#calls = new RunningCalls({
      rpc: this.#rpc,
      desk: this.#desk,
      limits,
      sharesPipe: route.shared,
      diagnose: (text) => this.#diagnose(text),
      explain: (work) => this.#explained(work),
    });
    this.lost = this.#watch();
    this.#rpc.listen();
  }

  get inFlight(): number {
    return this.#slots.inUse;
  }

  get idle(): boolean {
    return this.#slots.idle;
  }

  /** True until the process has gone or `stop` was called. */
  get usable(): boolean {
    return !this.#ended && !this.#stopping && this.#claims !== undefined;
  }

  get pid(): number | null {
    return this.#options.route.process.pid;
  }

  async initialize(facts: HandshakeFacts): Promise<TierClaims> {
    const { plugin, services, limits, onDropped } = this.#options;
    this.#scratch = facts.paths.scratch;
    this.#claims = await this.#explained(shakeHands(this.#rpc, plugin, facts));
    if (!this.#ended) {
      this.#traffic = openEventTraffic({
        plugin: plugin.name,
        claims: this.#claims.events,
        rpc: this.#rpc,
        grants: this.#grants,
        services: services.events,
        limits,
        onDropped,
      });
    }
    return this.#claims;
  }

  async prepare(params: PrepareParams, signal: AbortSignal): Promise<Prepared> {
    const { rootSessionId: _root, session: _session, declarationDigest, ...sent } = params;
    const tool = this.#tool(params.tool, declarationDigest);
    const facts = prepareContext(this.#options.plugin.name, params);
    const prepared = await this.#explained(
      this.#desk.ask(ToolsPrepare, {
        signal,
        timeoutMs: this.#options.limits.prepareTimeoutMs,
        context: { scope: "request", facts },
        params: (contextId) => ({ ...sent, context_id: contextId }),
      }),
    );
    return { ...checkPrepared(prepared, tool), generation: this.generation };
  }

  /** Asks for the declaration of a name under one of the plugin's claims; null: it has no such tool (E-133). */
  async resolveTool(name: string, signal: AbortSignal): Promise<ResolvedTool | null> {
    if (!this.dynamicTools.isClaimed(name)) {
      throw new CookieError(
        "plugin_unavailable",
        `the plugin ${this.#options.plugin.name} does not claim ${name} any more`,
      );
    }
    const { tool } = await this.#explained(
      this.#desk.ask(ToolsResolve, {
        signal,
        timeoutMs: this.#options.limits.prepareTimeoutMs,
        params: () => ({ name }),
      }),
    );
    return tool === null ? null : this.dynamicTools.declare(name, tool);
  }

  async revalidate(invocationId: ToolCallId, prepared: string, signal: AbortSignal): Promise<void> {
    await this.#explained(
      this.#desk.ask(ToolsRevalidate, {
        signal,
        timeoutMs: this.#options.limits.prepareTimeoutMs,
        params: () => ({ invocation_id: invocationId, prepared }),
      }),
    );
  }

  /** Asks for a service that this plugin provides (E-122). Rejects with the plugin's error, or `timeout`. */
  async serve(request: ServiceRequest, signal: AbortSignal): Promise<JsonObject> {
    const { name } = this.#options.plugin;
    const { service, method, params, session } = request;
    return this.#explained(
      this.#desk.ask(ServiceCall, {
        signal,
        timeoutMs: this.#options.limits.serviceTimeoutMs,
        ...(session && { context: { scope: "request", facts: serviceContext(name, session) } }),
        params: (contextId) => ({
          service,
          method,
          params,
          ...(session && { context_id: contextId }),
        }),
      }),
    );
  }

  /** Gives unused tokens back (E-084). */
  discard(prepared: string[]): void {
    if (this.usable) this.#rpc.notify(ToolsDiscard, { prepared }).catch(() => undefined);
  }

  /** Settles only after every delta that came before the answer is stored (E-008). */
  async call(call: PluginCall, signal: AbortSignal): Promise<ToolCallResult> {
    const tool = this.#tool(call.params.tool, call.declarationDigest);
    const contextOf = (ended: AbortSignal) => callContext(this.#options.plugin.name, call, ended);
    const { answer, context } = await this.#calls.run(call, tool, contextOf, signal);
    return this.#takeAttachments(answer, context, signal);
  }

  /** Undefined when the plugin does not declare the hook in this process. */
  async intercept<H extends HookName>(
    hook: H,
    request: { readonly site: HookSite; readonly facts: HookFacts<H> },
    signal: AbortSignal,
  ): Promise<HookResult<H> | undefined> {
    if (this.#claims?.intercept.includes(hook) !== true) return undefined;
    const { name, interceptionTimeoutMs: timeoutMs } = this.#options.plugin;
    const question = { ...request, hook, plugin: name, timeoutMs };
    return this.#explained(askHook(this.#desk, question, signal));
  }

  /** False when the call takes no input (any more) (E-106). Rejects with `busy` when too much waits. */
  stdin(invocationId: ToolCallId, data: Uint8Array | null, eof: boolean): Promise<boolean> {
    return this.#calls.stdin(invocationId, data, eof);
  }

  /** Waits until nothing is open, at most so long; keeping new requests away is the caller's (E-064). */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#slots.idle) return;
    const quiet = new AbortController();
    this.#quiet = quiet;
    await Promise.race([sleep(timeoutMs, quiet.signal), this.lost]);
    // An end of the wait by anything but the timer leaves no timer.
    quiet.abort();
  }

  /** Cancels what runs, lets it clean up, then ends the plugin (E-065). Whatever happens, nothing is left. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    // A drain under way has nothing to wait for any more.
    this.#quiet?.abort();
    this.dynamicTools.close();
    const { limits, plugin, route } = this.#options;
    const reason = new CookieError("shutting_down", `the plugin ${plugin.name} is being stopped`);
    this.#slots.close(reason);
    this.#desk.interruptAll(reason);
    await Promise.all([
      this.drain(limits.cancelCleanupMs),
      this.#traffic?.drain(limits.cancelCleanupMs),
    ]);
    this.#traffic?.end();
    this.#rpc.notify(PluginShutdown, {}).catch(() => undefined);
    await route.end(plugin.shutdownGraceMs, limits.reapMs);
    this.#rpc.close();
  }

  /** Gives a start up at once: nobody waits for its work. */
  async abandon(cause: string): Promise<void> {
    this.#stopping = true;
    await this.#options.route.abandon(cause);
    this.#rpc.close();
  }

  async #takeAttachments(
    answer: ToolCallResult,
    context: CallContext,
    signal: AbortSignal,
  ): Promise<ToolCallResult> {
    const { attachments = [] } = answer;
    if (attachments.length === 0) return answer;
    const { takeAttachments } = await import("./take-attachments.ts");
    const { plugin, services } = this.#options;
    const { artifacts } = services;
    const source = { context, tier: plugin.tier, scratch: this.#scratch, artifacts };
    return { ...answer, attachments: await takeAttachments(attachments, source, signal) };
  }

  #tool(name: string, pinned: Digest | undefined): ResolvedTool {
    const tool =
      this.#claims?.tools.find(({ declaration }) => declaration.name === name) ??
      this.dynamicTools.find(name);
    if (tool !== undefined && (pinned ?? tool.declarationDigest) === tool.declarationDigest) {
      return tool;
    }
    if (tool !== undefined) {
      throw new CookieError(
        "operation_changed",
        `${name} is no longer the tool that this run was started with`,
      );
    }
    throw new CookieError(
      "plugin_unavailable",
      `the plugin ${this.#options.plugin.name} does not serve the tool ${name} any more`,
    );
  }

  #isGranted(service: HostGrant): boolean {
    return SERVED_GRANTS.includes(service) && this.#claims?.services.includes(service) === true;
  }

  async #onDeaf(abandoned: number): Promise<void> {
    const { limits, route } = this.#options;
    if (!route.shared) return route.process.kill("kept working on a request that was given up");
    if (abandoned > limits.abandonedRequests) {
      return route.process.kill("keeps too many requests that were given up");
    }
    try {
      await this.#rpc.request(PluginPing, {}, { timeoutMs: limits.pingTimeoutMs });
    } catch (error) {
      if (isCookieError(error, "timeout")) route.process.kill("did not answer a ping");
    }
  }

  #onClosed(): void {
    this.#ended = true;
    this.#traffic?.end();
    this.#grants.revokeAll();
    this.dynamicTools.close();
    if (!this.#stopping) this.#options.route.process.expectExit();
  }

  async #watch(): Promise<CookieError> {
    await this.#rpc.closed;
    const { plugin, route } = this.#options;
    const error = this.#stopping
      ? new CookieError("shutting_down", `the plugin ${plugin.name} was stopped`)
      : crashError(plugin.name, await route.process.exit);
    this.#slots.close(error);
    return error;
  }

  /** The transport only knows that it ended; how the process ended is what helps. */
  async #explained<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#ended && isCookieError(error, "plugin_crashed") ? await this.lost : error;
    }
  }

  #diagnose(text: string): void {
    this.#options.plugin.subject.diagnose(text);
  }
}
