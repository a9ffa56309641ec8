import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CookieError,
  EVENT_PAYLOADS,
  type EventPayload,
  type JsonObject,
  type OverlayRule,
  type PermissionRule,
  RunId,
  SessionId,
  type StoredEvent,
  type ToolCallPart,
  type ToolCallResult,
  type ToolDeclaration,
} from "@cookie-agent/sdk/protocol";
import { beforeAll } from "vitest";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import { ApprovalGate } from "../../../../kernel/src/permission/approval-gate.ts";
import type { Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import type { HookChain } from "../../../../kernel/src/plugin/hook-chain.ts";
import type {
  PluginCall,
  Prepared,
  PrepareParams,
} from "../../../../kernel/src/plugin/plugin-call.ts";
import type { PluginFacts, ResolvedTool } from "../../../../kernel/src/plugin/plugin-facts.ts";
import { canonicalJson } from "../../../../kernel/src/support/canonical-json.ts";
import { sha256Hex } from "../../../../kernel/src/support/digest.ts";
import { KeyMutex } from "../../../../kernel/src/support/key-mutex.ts";
import type { ToolPlugins } from "../../../../kernel/src/tool/call-context.ts";
import { ArgumentChecker } from "../../../../kernel/src/tool/check-arguments.ts";
import type {
  CommittedTurn,
  DispatchStages,
  ToolCallOutcome,
} from "../../../../kernel/src/tool/dispatch-stages.ts";
import { dispatchTurn } from "../../../../kernel/src/tool/dispatch-turn.ts";
import { OutputHub } from "../../../../kernel/src/tool/output-hub.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";

export const SESSION = SessionId.parse("0198c000-0000-7000-8000-000000000001");
export const RUN = RunId.parse("0198c000-0000-7000-8000-00000000000a");
export const NO_SELECTION = {
  profile: "cookie",
  include: [],
  exclude: [],
  implementations: new Map<string, string>(),
};

/** A declaration with one optional string argument, prepared by the kernel under action `plugin`. */
export function declareTool(
  declaration: Partial<ToolDeclaration> & { readonly name: string },
): ToolDeclaration {
  return {
    description: `the tool ${declaration.name}`,
    permission_name: declaration.name,
    parameters: { type: "object", properties: { value: { type: "string" } } },
    prepare: { mode: "static", resources: [{ action: "plugin", arg: "value" }] },
    ...declaration,
  };
}

/** A declaration as the plugin room hands it on, at the first-party tier. */
export function resolveTool(declaration: ToolDeclaration): ResolvedTool {
  return {
    declaration,
    declarationDigest: sha256Hex(canonicalJson(declaration)),
    concurrency: declaration.concurrency ?? "exclusive",
    output: declaration.output ?? { mode: "single" },
    truncation: declaration.result_truncation ?? "bounded",
    timeoutMs: declaration.timeout_ms ?? null,
    prepare: declaration.prepare ?? {
      mode: "static",
      resources: [{ action: "plugin", none: true }],
    },
    displayArgument: declaration.display_argument ?? "value",
    revalidate: declaration.revalidate ?? false,
    retrySafe: declaration.retry_safe ?? false,
  };
}

export function pluginFacts(
  name: string,
  tools: readonly ToolDeclaration[],
  facts: Partial<PluginFacts> = {},
): PluginFacts {
  return {
    name,
    tier: "first_party",
    version: "1.0.0",
    source: "bundled",
    tools: tools.map(resolveTool),
    instructions: null,
    manifestDigest: null,
    required: false,
    diagnostics: [],
    ...facts,
  };
}

export interface Invocation {
  readonly plugin: string;
  readonly call: PluginCall;
  readonly signal: AbortSignal;
}

/** Plugins whose answers the test decides; `trace` tells what they were asked, in order. */
export class ScriptedPlugins implements ToolPlugins {
  readonly trace: string[];
  readonly calls: PluginCall[] = [];
  readonly prepares: PrepareParams[] = [];
  readonly discarded: string[] = [];
  facts: readonly PluginFacts[];
  answer: (invocation: Invocation) => Promise<ToolCallResult> = () =>
    Promise.resolve({ content: "done" });
  prepared: (params: PrepareParams) => Promise<Prepared> = () => {
    throw new CookieError("prepare_failed", "nothing is prepared");
  };

  constructor(facts: readonly PluginFacts[], trace: string[]) {
    this.facts = facts;
    this.trace = trace;
  }

  plugins(): readonly PluginFacts[] {
    return this.facts;
  }
  currentTool(plugin: string, name: string): ResolvedTool | undefined {
    const facts = this.facts.find((one) => one.name === plugin);
    return facts?.tools.find(({ declaration }) => declaration.name === name);
  }
  resolved: (name: string) => Promise<ResolvedTool | null> = () => Promise.resolve(null);
  resolveTool(plugin: string, name: string): Promise<ResolvedTool | null> {
    this.trace.push(`resolve ${plugin} ${name}`);
    return this.resolved(name);
  }
  warm(plugin: string): void {
    this.trace.push(`warm ${plugin}`);
  }
  prepare(_plugin: string, params: PrepareParams): Promise<Prepared> {
    this.trace.push(`prepare ${params.tool}`);
    this.prepares.push(params);
    return this.prepared(params);
  }
  revalidate(_plugin: string, token: { prepared: string }): Promise<void> {
    this.trace.push(`revalidate ${token.prepared}`);
    return Promise.resolve();
  }
  discard(_plugin: string, prepared: string[]): void {
    this.discarded.push(...prepared);
  }
  async call(plugin: string, call: PluginCall, signal: AbortSignal): Promise<ToolCallResult> {
    const label = `${call.params.tool} ${String(call.params.arguments["value"] ?? "")}`.trim();
    this.trace.push(`call ${label}`);
    this.calls.push(call);
    try {
      return await this.answer({ plugin, call, signal });
    } finally {
      this.trace.push(`end ${label}`);
    }
  }
  stdin(_plugin: string, _id: string, _data: Uint8Array | null, eof: boolean): Promise<boolean> {
    this.trace.push(eof ? "stdin end" : "stdin");
    return Promise.resolve(true);
  }
}

/** The session's record, checked against the schemas of its events. */
export class MemoryLog {
  readonly blocks: EventPayload[][] = [];
  readonly streamed: EventPayload[] = [];
  readonly #trace: string[];
  failure: CookieError | undefined;
  /** Told of every event once it is recorded. */
  observe: (event: StoredEvent) => void = () => undefined;

  constructor(trace: string[]) {
    this.#trace = trace;
  }

  append(drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    if (this.failure) return Promise.reject(this.failure);
    const block = drafts.map(({ payload }) => check(payload));
    this.blocks.push(block);
    this.#trace.push(...block.map(({ type }) => type));
    const stored = block.map((payload, index) => ({
      session_id: SESSION,
      run_id: RUN,
      seq: this.blocks.length * 1000 + index,
      timestamp: "2026-01-01T00:00:00.000Z",
      payload,
    }));
    for (const event of stored) this.observe(event);
    return Promise.resolve(stored);
  }

  appendStream({ payload }: EventDraft): void {
    this.streamed.push(check(payload));
  }

  of<T extends EventPayload["type"]>(type: T): Extract<EventPayload, { type: T }>[] {
    return this.blocks
      .flat()
      .filter((payload): payload is Extract<EventPayload, { type: T }> => payload.type === type);
  }
}

function check(payload: EventPayload): EventPayload {
  EVENT_PAYLOADS[payload.type].parse(payload);
  return payload;
}

export interface Room {
  readonly trace: string[];
  readonly plugins: ScriptedPlugins;
  readonly log: MemoryLog;
  readonly stages: DispatchStages;
  readonly policy: Policy;
  /** The real gate, until a test puts a decision of its own here. */
  gate: DispatchStages["gate"]["decide"];
  dispatch(
    calls: readonly (readonly [tool: string, input: unknown])[],
    options?: Partial<CommittedTurn> & { signal?: AbortSignal },
  ): Promise<ToolCallOutcome[]>;
}

let storeDir = "";
// in a hook: a file of which no test is wanted runs none
beforeAll(async () => {
  storeDir = await mkdtemp(join(tmpdir(), "cookie-dispatch-"));
  await mkdir(join(storeDir, SESSION));
  return () => rm(storeDir, { recursive: true, force: true });
});

/** The tool room over scripted plugins, with a real artifact store, policy and approval gate. */
export function openRoom(
  tools: readonly ToolDeclaration[],
  options: {
    rules?: readonly PermissionRule[];
    overlay?: readonly OverlayRule[];
    keys?: KeyMutex;
    limits?: Partial<DispatchStages["limits"]>;
    mode?: "yolo" | "auto_approve_n";
    hooks?: HookChain;
  } = {},
): Room {
  const trace: string[] = [];
  const plugins = new ScriptedPlugins([pluginFacts("builtin.test", tools)], trace);
  const log = new MemoryLog(trace);
  const gate = new ApprovalGate({
    append: (drafts) => log.append(drafts),
    mode: () => options.mode ?? "yolo",
    attended: () => false,
    headless: true,
    approvalTimeoutMs: 1000,
  });
  log.observe = (event) => gate.apply(event);
  const policy: Policy = {
    documentRules: options.rules ?? allowAll(),
    overlayRules: options.overlay ?? [],
    workspaceRoot: storeDir,
  };
  const stages: DispatchStages = {
    log: new RunLog(log),
    plugins,
    ownerOf: (name) =>
      buildSlotTable({ plugins: plugins.facts, tools: NO_SELECTION }).ownerOf(name),
    artifacts: createLocalArtifactStore({ storeDir }),
    gate: { decide: (...args) => room.gate(...args) },
    policy: () => policy,
    keys: options.keys ?? new KeyMutex(),
    outputs: new OutputHub(),
    limits: { maxLines: 2000, maxBytes: 51_200, maxRetainedBytes: 1_000_000, ...options.limits },
    checker: new ArgumentChecker(),
    ...(options.hooks && { hooks: options.hooks }),
  };
  const table = buildSlotTable({ plugins: plugins.facts, tools: NO_SELECTION });
  const toolSet = table.freeze({ policy, toolCalling: true });
  const room: Room = {
    trace,
    plugins,
    log,
    stages,
    policy,
    gate: (...args) => gate.decide(...args),
    dispatch(calls, { signal, ...turn } = {}) {
      const committed: CommittedTurn = {
        sessionId: SESSION,
        rootSessionId: SESSION,
        runId: RUN,
        modelTurnSeq: 1,
        calls: calls.map(([name, input], index) => ({
          part: toolCall(name, input, `call-${index}`),
          contentIndex: index,
        })),
        toolSet,
        cwd: storeDir,
        workspaceRoot: storeDir,
        stdinAttended: false,
        ...turn,
      };
      const ended = dispatchTurn(committed, stages, signal ?? new AbortController().signal);
      return ended.finally(() => stages.log.flush());
    },
  };
  return room;
}

export function toolCall(name: string, input: unknown, id = "call-0"): ToolCallPart {
  return { type: "tool_call", id, provider_item_id: null, name, input, raw_input: null };
}

export function allowAll(): PermissionRule[] {
  return (["read", "write", "bash", "plugin"] as const).map((action) => ({
    action,
    resource: "*",
    effect: "allow",
  }));
}

/** A tool that the plugin prepares. */
export function declareDynamic(
  name: string,
  extra: Partial<ToolDeclaration> = {},
): ToolDeclaration {
  return declareTool({ name, prepare: { mode: "dynamic", actions: ["write"] }, ...extra });
}

export function preparedAs(label: string, extra: Partial<Prepared> = {}): Prepared {
  return {
    resources: [{ action: "write", label }],
    generation: 1,
    prepared: `token ${label}`,
    ...extra,
  };
}

export function stringSchema(...names: string[]): JsonObject {
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
    required: names,
    additionalProperties: false,
  };
}
