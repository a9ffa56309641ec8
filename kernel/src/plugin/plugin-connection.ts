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
  PROGRESS_WINDOW_BYTES,
  ServiceCall,
  type SessionId,
  type ToolCallId,
  type ToolCallResult,
  type ToolProgress,
  ToolsCall,
  ToolsDiscard,
  ToolsPrepare,
  ToolsProgress,
  ToolsProgressAck,
  ToolsResolve,
  ToolsRevalidate,
  ToolsStdin,
} from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { sleep } from "../support/deadline.ts";
import { safeText } from "../support/safe-text.ts";
import { askHook } from "./ask-hook.ts";
import { checkAnswer } from "./check-answer.ts";
import { checkPrepared } from "./check-prepared.ts";
import { ContextGrants } from "./context-grants.ts";
import { withDiscarded } from "./discarded.ts";
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
import { ProgressIntake } from "./progress-intake.ts";
import { RequestDesk } from "./request-desk.ts";
import { RequestSlots } from "./request-slots.ts";
import { serveEmit } from "./serve-emit.ts";
import { serveHostRequests } from "./serve-host-requests.ts";
import { serveToolList } from "./serve-tool-list.ts";
import type { ServiceRequest } from "./service-request.ts";
import { StdinFeed } from "./stdin-feed.ts";
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

interface RunningCall {
  readonly intake: ProgressIntake;
  readonly stdin: StdinFeed | null;
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
  readonly #running = new Map<ToolCallId, RunningCall>();
  /** Aborts when a stopping connection has nothing open any more. */
  readonly #quiet = new AbortController();
  #claims: TierClaims | undefined;
  #traffic: EventTraffic | undefined;
  #scratch = "";
  /** Aborts when a connection that is being drained has nothing open any more. */
  #drained: AbortController | undefined;
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
        this.#drained?.abort();
        if (this.#stopping) this.#quiet.abort();
        else options.onIdle();
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
    this.#rpc.onNotification(ToolsProgress, (delta, raw) => this.#onProgress(delta, raw));
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
    const { rootSessionId, session: _session, declarationDigest, ...sent } = params;
    const tool = this.#tool(params.tool, declarationDigest);
    const facts = this.#context(sent, rootSessionId ?? params.session_id, params);
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
    const { service, method, params, session } = request;
    return this.#explained(
      this.#desk.ask(ServiceCall, {
        signal,
        timeoutMs: this.#options.limits.serviceTimeoutMs,
        ...(session && { context: { scope: "request", facts: this.#serviceContext(session) } }),
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
    const { params } = call;
    const id = params.invocation_id;
    const tool = this.#tool(params.tool, call.declarationDigest);
    if (this.#running.has(id)) throw new CookieError("busy", `the call ${id} runs already`);
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    let progressFailure: CookieError | undefined;
    const intake = this.#openIntake(call, tool, (error) => {
      progressFailure = error;
      stop.abort(error);
    });
    const stdin = params.stdin ? new StdinFeed(this.#options.limits) : null;
    this.#running.set(id, { intake, stdin });
    const facts = this.#callContext(call, stop.signal);
    try {
      const answer = await this.#explained(
        this.#desk.ask(ToolsCall, {
          signal: stop.signal,
          timeoutMs: call.timeoutMs,
          context: { scope: "call", facts },
          params: (contextId) => ({ ...params, context_id: contextId }),
        }),
      );
      await intake.finish();
      if (progressFailure !== undefined) throw progressFailure;
      return await this.#takeAttachments(checkAnswer(answer, tool, intake.streamed), facts);
    } catch (error) {
      await intake.finish();
      throw isCookieError(error) ? withDiscarded(error, { progress: intake.discarded }) : error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      stdin?.close();
      this.#running.delete(id);
    }
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
  async stdin(invocationId: ToolCallId, data: Uint8Array | null, eof: boolean): Promise<boolean> {
    const feed = this.#running.get(invocationId)?.stdin;
    if (!feed) return false;
    return feed.write(data, eof, async (chunk, last) => {
      const { accepted } = await this.#rpc.request(ToolsStdin, {
        invocation_id: invocationId,
        ...(chunk === null ? {} : { data: chunk }),
        eof: last,
      });
      return accepted;
    });
  }

  /** Waits until nothing is open, at most so long; keeping new requests away is the caller's (E-064). */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#slots.idle) return;
    this.#drained = new AbortController();
    await Promise.race([sleep(timeoutMs, this.#drained.signal), this.lost]);
    // An end of the wait by anything but the timer leaves no timer.
    this.#drained.abort();
  }

  /** Cancels what runs, lets it clean up, then ends the plugin (E-065). Whatever happens, nothing is left. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#drained?.abort();
    this.dynamicTools.close();
    const { limits, plugin, route } = this.#options;
    const reason = new CookieError("shutting_down", `the plugin ${plugin.name} is being stopped`);
    this.#slots.close(reason);
    this.#desk.interruptAll(reason);
    await Promise.all([
      this.#slots.idle || sleep(limits.cancelCleanupMs, this.#quiet.signal),
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

  #openIntake(
    call: PluginCall,
    tool: ResolvedTool,
    fail: (error: CookieError) => void,
  ): ProgressIntake {
    const { limits, route } = this.#options;
    return new ProgressIntake({
      output: tool.truncation === "opt_out" ? null : tool.output,
      windowBytes: route.shared ? PROGRESS_WINDOW_BYTES : null,
      ackBytes: limits.ackBytes,
      capture: (news) => call.onProgress(news),
      acknowledge: (bytes) => {
        this.#rpc
          .notify(ToolsProgressAck, { invocation_id: call.params.invocation_id, bytes })
          .catch(() => undefined);
      },
      fail,
    });
  }

  #onProgress(delta: ToolProgress, raw: readonly Uint8Array[] | undefined): void | Promise<void> {
    const running = this.#running.get(delta.invocation_id);
    if (running === undefined || running.intake.closed) {
      this.#diagnose("progress for a call that is not running was dropped");
    }
    const stored = running?.intake.accept(delta, raw);
    // A pipe of its own is simply not read on; a shared one must not stop for one call.
    if (stored !== undefined && !this.#options.route.shared) return stored;
  }

  #context(
    ids: Pick<PluginCall["params"], "session_id" | "run_id" | "invocation_id">,
    rootSessionId: SessionId,
    { session }: Pick<PrepareParams, "session">,
  ): CallContext {
    return {
      plugin: this.#options.plugin.name,
      sessionId: ids.session_id,
      rootSessionId,
      runId: ids.run_id,
      toolCallId: ids.invocation_id,
      ...(session && { session }),
    };
  }

  #serviceContext(session: NonNullable<ServiceRequest["session"]>): CallContext {
    const { sessionId, rootSessionId, rights } = session;
    return {
      plugin: this.#options.plugin.name,
      sessionId,
      rootSessionId,
      runId: null,
      toolCallId: null,
      ...(rights && { session: rights }),
    };
  }

  #callContext(call: PluginCall, signal: AbortSignal): CallContext {
    const { params, rootSessionId, approvedLabels, ask } = call;
    return {
      ...this.#context(params, rootSessionId, call),
      ...(approvedLabels && { approvedLabels }),
      // A cancelled call no longer waits for anybody.
      ...(ask && { ask: (question, ended) => ask(question, AbortSignal.any([ended, signal])) }),
      written: new Set(),
    };
  }

  async #takeAttachments(answer: ToolCallResult, context: CallContext): Promise<ToolCallResult> {
    const { attachments = [] } = answer;
    if (attachments.length === 0) return answer;
    const { takeAttachments } = await import("./take-attachments.ts");
    const { plugin, services } = this.#options;
    return {
      ...answer,
      attachments: await takeAttachments(attachments, {
        context,
        tier: plugin.tier,
        scratch: this.#scratch,
        artifacts: services.artifacts,
      }),
    };
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
