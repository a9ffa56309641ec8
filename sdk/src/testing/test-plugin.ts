import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Plugin } from "../plugin/define-plugin.ts";
import { servePlugin } from "../plugin/serve.ts";
import { CookieError } from "../protocol/errors.ts";
import type { TrustTier } from "../protocol/manifest.ts";
import { PluginInitialize, type ToolCallResult } from "../protocol/plugin-methods.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { ToolDeclaration } from "../protocol/tool.ts";
import { createMemoryPair } from "../rpc/memory-transport.ts";
import { type Answer, describeAnswer } from "./answer.ts";
import type { ProgressNote } from "./driven-call.ts";
import { type FakeServices, grantsOf, inMemoryServices } from "./fake-services.ts";
import { initializeParams } from "./initialize-params.ts";
import { preparedPart } from "./prepared-part.ts";
import { type CallRequest, WireDriver } from "./wire-driver.ts";

export interface HarnessOptions {
  /** The `config` table of the plugin's entry. */
  readonly config?: JsonObject;
  /** The folder that is worked in; default: an empty one that `close` removes. */
  readonly workspace?: string;
  readonly tier?: TrustTier;
  /** Whether the plugin may send raw bytes; default true. */
  readonly raw?: boolean;
  /**
   * Host services by method name, such as `"host/media/sniff"`; they stand in place of the built-in fakes, which keep
   * artifacts in memory and make up a session. What is in neither is not granted.
   */
  readonly services?: FakeServices;
}

export interface HarnessCall {
  /** Cancels the call, as a user does. */
  readonly signal?: AbortSignal;
  /** Opens standard input and types this. */
  readonly stdin?: string | AsyncIterable<string>;
  /** Told of each piece of output as it comes. */
  onOutput?(text: string, stream: string | undefined): void;
}

/** What became of one call. */
export interface HarnessResult {
  /** The answer as it goes over the wire; null when the call failed or was cancelled with an error. */
  readonly answer: ToolCallResult | null;
  readonly error: CookieError | null;
  /** All output, streamed or answered, by stream; of an unnamed stream as `text`. */
  readonly text: string;
  readonly streams: Readonly<Record<string, string>>;
  /** What was said for people while it ran. */
  readonly progress: readonly ProgressNote[];
  /** What the plugin did that the kernel would refuse; empty when all is well. */
  readonly problems: readonly string[];
}

const CALL_MS = 30_000;
const START_MS = 10_000;

/** A plugin under test, served over the real protocol in this process. `close` it. */
export interface PluginHarness {
  readonly tools: readonly ToolDeclaration[];
  /** Absolute. */
  readonly workspace: string;
  /** What it wrote to the kernel's log. */
  readonly logs: readonly string[];
  /** Prepares where the tool does so, and calls. Arguments go to the plugin unchecked by a JSON Schema. */
  call(tool: string, args: JsonObject, options?: HarnessCall): Promise<HarnessResult>;
  /** What a tool that prepares dynamically answers. Rejects with its error. */
  prepare(tool: string, args: JsonObject): Promise<JsonObject>;
  /** Any other request of the protocol, such as `plugin/intercept/tool_before_call`. Rejects with its error. */
  request(method: string, params: JsonObject): Promise<JsonObject>;
  /** Any notification, such as `plugin/event`. */
  notify(method: string, params: JsonObject): void;
  close(): Promise<void>;
}

/** Serves a plugin for unit tests: no kernel, no process, the real wire. Rejects when the plugin does not start. */
export async function testPlugin(
  plugin: Plugin,
  options: HarnessOptions = {},
): Promise<PluginHarness> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "cookie-plugin-")));
  const paths = {
    workspace: options.workspace ?? join(root, "workspace"),
    data: join(root, "data"),
    scratch: join(root, "scratch"),
  };
  await Promise.all(Object.values(paths).map((path) => mkdir(path, { recursive: true })));
  const [near, far] = createMemoryPair();
  const services = { ...inMemoryServices(paths), ...options.services };
  const raw = options.raw ?? true;
  const driver = new WireDriver({ transport: near, services, raw });
  const served = servePlugin(plugin, far);
  served.catch(() => undefined);
  const close = async () => {
    driver.notify("plugin/shutdown", {});
    await served.finally(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  };
  const { definition } = plugin;
  const params = initializeParams({
    name: definition.name,
    tier: options.tier ?? "trusted",
    manifestDigest: null,
    services: grantsOf(services),
    raw,
    dynamicTools: definition.capabilities?.dynamic_tools === true,
    config: options.config ?? {},
    paths,
  });
  const answer = await driver.request("plugin/initialize", params, START_MS);
  if (answer.kind !== "result") {
    await close();
    throw errorOf(answer);
  }
  const { tools = [] } = PluginInitialize.result.parse(answer.result);
  const request = async (method: string, sent: JsonObject) =>
    resultOf(await driver.request(method, sent, CALL_MS));
  return {
    tools,
    workspace: paths.workspace,
    logs: driver.logs,
    call: async (tool, args, call = {}) =>
      runCall(driver, declarationOf(tools, tool), {
        tool,
        arguments: args,
        cwd: paths.workspace,
        call,
      }),
    prepare: async (tool, args) => {
      const sent = { tool, arguments: args, cwd: paths.workspace };
      return resultOf(await driver.prepare(sent, CALL_MS));
    },
    request,
    notify: (method, sent) => driver.notify(method, sent),
    close,
  };
}

interface HarnessRequest extends Pick<CallRequest, "tool" | "arguments" | "cwd"> {
  readonly call: HarnessCall;
}

async function runCall(
  driver: WireDriver,
  declaration: ToolDeclaration,
  request: HarnessRequest,
): Promise<HarnessResult> {
  const { call: options, ...sent } = request;
  let prepared: Partial<CallRequest> = {};
  if (declaration.prepare?.mode === "dynamic") {
    const answer = await driver.prepare(sent, CALL_MS);
    if (answer.kind !== "result") return failed(errorOf(answer));
    prepared = preparedPart(answer.result);
  }
  const { onOutput } = options;
  const started = driver.call(
    {
      ...sent,
      ...prepared,
      output: declaration.output ?? { mode: "single" },
      stdin: options.stdin !== undefined,
      ...(onOutput === undefined
        ? {}
        : { onOutput: ({ bytes, stream }) => onOutput(bytes.toString("utf8"), stream) }),
    },
    CALL_MS,
  );
  const cancel = () => started.cancel();
  if (options.signal?.aborted === true) cancel();
  else options.signal?.addEventListener("abort", cancel, { once: true });
  if (options.stdin !== undefined) void feed(driver, started.call.invocationId, options.stdin);
  const settled = await started.answer;
  options.signal?.removeEventListener("abort", cancel);
  const { call } = started;
  const answer = settled.kind === "result" ? (settled.result as ToolCallResult) : null;
  const streams: Record<string, string> = {};
  for (const { stream } of call.output)
    if (stream !== undefined) streams[stream] = call.text(stream);
  for (const { stream, text } of answer?.outputs ?? []) streams[stream] = text;
  return {
    answer,
    error: settled.kind === "result" ? null : errorOf(settled),
    text: answer?.content ?? call.text(),
    streams,
    progress: call.notes,
    problems: [...call.problems, ...driver.problems],
  };
}

async function feed(
  driver: WireDriver,
  invocationId: string,
  source: string | AsyncIterable<string>,
): Promise<void> {
  const type = (text: string | undefined, eof: boolean) =>
    driver.request(
      "plugin/tools/stdin",
      {
        invocation_id: invocationId,
        ...(text === undefined ? {} : { data: Buffer.from(text).toString("base64") }),
        eof,
      },
      CALL_MS,
    );
  if (typeof source === "string") {
    await type(source, true);
    return;
  }
  for await (const text of source) await type(text, false);
  await type(undefined, true);
}

function declarationOf(tools: readonly ToolDeclaration[], name: string): ToolDeclaration {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool !== undefined) return tool;
  const known = tools.map((candidate) => candidate.name).join(", ");
  throw new CookieError("invalid_params", `the plugin has no tool ${name}; it has ${known}`);
}

function failed(error: CookieError): HarnessResult {
  return { answer: null, error, text: "", streams: {}, progress: [], problems: [] };
}

function resultOf(answer: Answer): JsonObject {
  if (answer.kind === "result") return answer.result;
  throw errorOf(answer);
}

function errorOf(answer: Answer): CookieError {
  if (answer.kind === "error") {
    return new CookieError(answer.code === "" ? "execution_failed" : answer.code, answer.message);
  }
  return new CookieError("timeout", describeAnswer(answer));
}
