import { ToolsResolve } from "../protocol/dynamic-tools.ts";
import { CookieError, isCookieError } from "../protocol/errors.ts";
import { HOOKS, type HookParams } from "../protocol/hooks.ts";
import { ConfigGet } from "../protocol/host-session.ts";
import type { HookName } from "../protocol/manifest.ts";
import type { Method, ParamsOf, ResultInput } from "../protocol/method.ts";
import {
  PluginInitialize,
  PluginPing,
  PluginShutdown,
  ToolsCall,
  ToolsDiscard,
  ToolsPrepare,
  ToolsProgressAck,
  ToolsRevalidate,
  ToolsStdin,
} from "../protocol/plugin-methods.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import { ServiceCall } from "../protocol/service-call.ts";
import { PLUGIN_PROTOCOL_VERSION } from "../protocol/version.ts";
import { Connection } from "../rpc/connection.ts";
import type { Transport } from "../rpc/transport.ts";
import { createManifest } from "./create-manifest.ts";
import type { Plugin, PluginContext, PluginDefinition } from "./define-plugin.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { DynamicToolList } from "./dynamic-tool-list.ts";
import { createEmit } from "./emit.ts";
import type { EventIntake } from "./event-intake.ts";
import { type HookHandler, type HookHandlers, runHook } from "./hook-handlers.ts";
import { createHostClient, type HostClient, writeLog } from "./host-client.ts";
import { parseArguments } from "./parse-arguments.ts";
import { callService } from "./plugin-services.ts";
import { PreparedStates, releaseState } from "./prepared-states.ts";
import { RunningCall } from "./running-call.ts";
import { serveEvents } from "./serve-events.ts";
import { settledWithin } from "./settled-within.ts";
import { toWireResult } from "./wire-result.ts";

/** How long the output of a failed call may wait to be taken. */
const FLUSH_WAIT_MS = 2000;
/** How long the kernel may take to tell its configuration. */
const CONFIG_WAIT_MS = 10_000;
/** How long calls may clean up when the plugin is told to leave. */
const STOP_WAIT_MS = 2000;

/** Serves one plugin on one connection, from `plugin/initialize` to shutdown or the end of its input. */
export class PluginServer {
  readonly #definition: PluginDefinition;
  readonly #plugin: Plugin;
  readonly #connection: Connection;
  readonly #states = new PreparedStates();
  readonly #calls = new Map<string, RunningCall>();
  #events: EventIntake | undefined;
  readonly #dynamic: DynamicToolList;
  #phase: "new" | "initializing" | "ready" | "stopping" = "new";
  #windowBytes = 0;
  #takesRaw = false;
  #scratch = "";

  constructor(plugin: Plugin, transport: Transport) {
    this.#plugin = plugin;
    this.#definition = plugin.definition;
    this.#connection = new Connection({
      transport,
      side: "plugin",
      answersAfterEnd: true,
      onProtocolError: (error) => {
        process.stderr.write(`${plugin.definition.name}: ${error.message}\n`);
      },
    });
    this.#dynamic = new DynamicToolList(plugin.definition.name, this.#connection);
  }

  /** Resolves when the plugin was stopped and its connection closed. */
  async run(): Promise<void> {
    const connection = this.#connection;
    const shutdown = new Promise<void>((resolve) => {
      connection.onNotification(PluginShutdown, () => resolve());
    });
    connection.onRequest(PluginInitialize, (params) => this.#initialize(params));
    connection.onRequest(PluginPing, () => ({}));
    this.#onReady(ToolsPrepare, (params, signal) => this.#prepare(params, signal));
    this.#onReady(ToolsRevalidate, (params) => this.#revalidate(params));
    this.#onReady(ToolsResolve, (params) => this.#resolve(params));
    this.#onReady(ToolsCall, (params, signal) => this.#call(params, signal));
    this.#onReady(ToolsStdin, (params) => this.#feedStdin(params));
    this.#onReady(ServiceCall, (params, signal) => this.#serve(params, signal));
    this.#events = serveEvents(connection, this.#definition);
    this.#serveHooks();
    connection.onNotification(ToolsDiscard, ({ prepared }) => {
      for (const token of prepared) this.#states.discard(token);
    });
    connection.onNotification(ToolsProgressAck, ({ invocation_id, bytes }) => {
      this.#calls.get(invocation_id)?.progress.acknowledge(bytes);
    });
    connection.listen();
    await Promise.race([shutdown, connection.ended, connection.closed]);
    await this.#stop();
  }

  #onReady<M extends Method>(
    method: M,
    handler: (params: ParamsOf<M>, signal: AbortSignal) => Promise<ResultInput<M>>,
  ): void {
    this.#connection.onRequest(method, async (params, signal) => {
      if (this.#phase === "stopping") {
        throw new CookieError("shutting_down", `plugin ${this.#definition.name} is shutting down`);
      }
      if (this.#phase !== "ready") {
        throw new CookieError("not_initialized", `${method.name} came before plugin/initialize`);
      }
      return handler(params, signal);
    });
  }

  #serveHooks(): void {
    const hooks: HookHandlers = this.#definition.hooks ?? {};
    for (const name of Object.keys(HOOKS) as HookName[]) {
      const handler = hooks[name] as HookHandler<HookName> | undefined;
      if (handler === undefined) continue;
      this.#onReady(HOOKS[name], async (params, signal) => {
        const request = params as HookParams<HookName>;
        const { session_id: sessionId, context_id: contextId } = request;
        const host = this.#hostClient(contextId, signal);
        const emit = createEmit(this.#connection, { sessionId, contextId });
        try {
          return await runHook(name, handler, request, { signal, host, emit });
        } catch (error) {
          throw describeFailure(error, "execution_failed", signal);
        }
      });
    }
  }

  async #initialize(
    params: ParamsOf<typeof PluginInitialize>,
  ): Promise<ResultInput<typeof PluginInitialize>> {
    if (this.#phase !== "new") {
      throw new CookieError("protocol_violation", "plugin/initialize was sent twice");
    }
    if (params.protocol_version !== PLUGIN_PROTOCOL_VERSION) {
      throw new CookieError(
        "version_mismatch",
        `plugin ${this.#definition.name} speaks protocol ${PLUGIN_PROTOCOL_VERSION}`,
        { data: { expected: PLUGIN_PROTOCOL_VERSION, found: params.protocol_version } },
      );
    }
    this.#phase = "initializing";
    this.#windowBytes = params.limits.progress_window_bytes;
    this.#takesRaw = params.capabilities.raw_output === true;
    this.#scratch = params.paths.scratch;
    const manifest = createManifest(this.#plugin, { kind: "node", entry: "." });
    try {
      await this.#definition.start?.(this.#contextOf(params));
    } catch (error) {
      throw describeFailure(error, "execution_failed");
    }
    this.#phase = "ready";
    // The answer is written before anything that is sent in a later turn of the loop (E-022).
    setImmediate(() => this.#dynamic.introduced());
    return {
      protocol_version: PLUGIN_PROTOCOL_VERSION,
      name: manifest.name,
      version: manifest.version,
      ...(manifest.capabilities === undefined ? {} : { capabilities: manifest.capabilities }),
      ...(manifest.tools === undefined ? {} : { tools: manifest.tools }),
      manifest_digest: params.plugin.manifest_digest,
    };
  }

  #contextOf(params: ParamsOf<typeof PluginInitialize>): PluginContext {
    return {
      config: params.config,
      paths: params.paths,
      tier: params.plugin.tier,
      engineVersion: params.engine_version,
      services: params.capabilities.services,
      kernelConfig: async (section) => {
        const options = { timeoutMs: CONFIG_WAIT_MS };
        return (await this.#connection.request(ConfigGet, { section }, options)).value;
      },
      setTools: (tools, options) => this.#dynamic.set(tools, options),
      log: (level, message, fields) => writeLog(this.#connection, level, message, fields),
    };
  }

  async #prepare(
    params: ParamsOf<typeof ToolsPrepare>,
    signal: AbortSignal,
  ): Promise<ResultInput<typeof ToolsPrepare>> {
    const tool = this.#toolOf(params.tool);
    if (tool.prepare?.mode !== "dynamic") {
      throw new CookieError("prepare_failed", `tool ${params.tool} is prepared by the kernel`);
    }
    const args = parseArguments(tool, params.arguments);
    try {
      const prepared = await tool.prepare.run({
        args,
        ...identityOf(params),
        signal,
        host: this.#hostClient(params.context_id, signal),
      });
      if (!Array.isArray(prepared?.resources as unknown)) {
        throw new CookieError(
          "prepare_failed",
          `prepare.run of tool ${params.tool} returned no list of resources; return {resources: [...]}`,
        );
      }
      const { state, release, primaryArgument, resources, serialize, ...rest } = prepared;
      const held = { tool: params.tool, state, release };
      if (signal.aborted) {
        releaseState(held);
        throw new CookieError("cancelled", "cancelled");
      }
      const kept = state !== undefined || release !== undefined;
      return {
        ...rest,
        resources: [...resources],
        ...(serialize === undefined ? {} : { serialize: [...serialize] }),
        ...(primaryArgument === undefined ? {} : { primary_argument: primaryArgument }),
        ...(kept ? { prepared: this.#states.hold(held) } : {}),
      };
    } catch (error) {
      throw describeFailure(error, "prepare_failed", signal);
    }
  }

  async #resolve({
    name,
  }: ParamsOf<typeof ToolsResolve>): Promise<ResultInput<typeof ToolsResolve>> {
    try {
      const tool = await this.#definition.resolveTool?.(name);
      return { tool: tool ? this.#dynamic.keep(name, tool) : null };
    } catch (error) {
      throw describeFailure(error, "execution_failed");
    }
  }

  async #revalidate({
    prepared,
  }: ParamsOf<typeof ToolsRevalidate>): Promise<ResultInput<typeof ToolsRevalidate>> {
    const { tool, state } = this.#states.peek(prepared);
    try {
      await this.#toolOf(tool).revalidate?.(state);
      return {};
    } catch (error) {
      throw describeFailure(error, "operation_changed");
    }
  }

  async #call(
    params: ParamsOf<typeof ToolsCall>,
    signal: AbortSignal,
  ): Promise<ResultInput<typeof ToolsCall>> {
    const tool = this.#toolOf(params.tool);
    const held =
      params.prepared === null ? undefined : this.#states.take(params.prepared, params.tool);
    let args: JsonObject;
    try {
      // The cancellation may have overtaken the call while it was queued.
      if (signal.aborted) throw new CookieError("cancelled", "cancelled");
      args = parseArguments(tool, params.arguments);
    } catch (error) {
      if (held !== undefined) releaseState(held);
      throw error;
    }
    const call = new RunningCall({
      connection: this.#connection,
      invocationId: params.invocation_id,
      signal,
      windowBytes: this.#windowBytes,
      raw: this.#takesRaw,
      stdin: params.stdin,
    });
    this.#calls.set(params.invocation_id, call);
    try {
      const answer = await tool.call({
        args,
        ...identityOf(params),
        resource: params.resource,
        state: held?.state,
        signal: call.signal,
        stdin: call.stdin,
        limits: { maxLines: params.limits.max_lines, maxBytes: params.limits.max_bytes },
        host: this.#hostClient(params.context_id, call.signal),
        progress: (delta) => call.progress.send(delta),
        emit: createEmit(this.#connection, {
          sessionId: params.session_id,
          contextId: params.context_id,
        }),
      });
      await call.progress.end();
      return toWireResult(answer, params.tool, call.progress.sentText);
    } catch (error) {
      // A kernel that takes no more output must not keep the failure from it.
      await settledWithin([call.progress.end()], FLUSH_WAIT_MS);
      call.progress.giveUp();
      throw describeFailure(error, "execution_failed", call.signal);
    } finally {
      this.#calls.delete(params.invocation_id);
      call.finish();
    }
  }

  async #feedStdin(params: ParamsOf<typeof ToolsStdin>): Promise<ResultInput<typeof ToolsStdin>> {
    const stdin = this.#calls.get(params.invocation_id)?.stdin;
    const data = Buffer.from(params.data ?? "", "base64");
    return { accepted: stdin?.write(data, params.eof) ?? false };
  }

  async #serve(params: ParamsOf<typeof ServiceCall>, signal: AbortSignal): Promise<JsonObject> {
    const { context_id: contextId } = params;
    const host = contextId === undefined ? null : this.#hostClient(contextId, signal);
    try {
      return await callService(this.#definition.services ?? {}, params, signal, host);
    } catch (error) {
      throw describeFailure(error, "execution_failed", signal);
    }
  }

  #hostClient(contextId: string, signal: AbortSignal): HostClient {
    return createHostClient(this.#connection, contextId, signal, this.#scratch);
  }

  async #stop(): Promise<void> {
    const started = this.#phase === "ready";
    this.#phase = "stopping";
    const running = [...this.#calls.values()];
    for (const call of running) call.abort();
    await settledWithin(
      [
        ...running.map((call) => call.finished),
        ...(this.#events?.open ?? []),
        this.#connection.answered(),
      ],
      STOP_WAIT_MS,
    );
    this.#states.discardAll();
    try {
      if (started) await this.#definition.stop?.();
    } finally {
      this.#connection.close();
    }
  }

  #toolOf(name: string): ToolDefinition {
    const { tools = {} } = this.#definition;
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    const found = tool ?? this.#dynamic.find(name);
    if (found !== undefined) return found;
    throw new CookieError("invalid_params", `plugin ${this.#definition.name} has no tool ${name}`, {
      data: { field: "tool" },
    });
  }
}

function identityOf(params: ParamsOf<typeof ToolsPrepare>) {
  return {
    tool: params.tool,
    sessionId: params.session_id,
    runId: params.run_id,
    invocationId: params.invocation_id,
    cwd: params.cwd,
    workspaceRoot: params.workspace_root,
  };
}

/** A tool's own error keeps its code; any other one gets `code` and its message; a cancelled call is `cancelled`. */
function describeFailure(error: unknown, code: string, signal?: AbortSignal): CookieError {
  if (signal?.aborted) return new CookieError("cancelled", "cancelled", { cause: error });
  if (isCookieError(error)) return error;
  return new CookieError(code, thrownText(error), { cause: error });
}

function thrownText(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message === "" ? thrown.name : thrown.message;
  if (typeof thrown === "string" && thrown !== "") return thrown;
  return `something that is no Error was thrown (${thrown === null ? "null" : typeof thrown})`;
}
