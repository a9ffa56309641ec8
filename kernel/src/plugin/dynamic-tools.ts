import { setImmediate as nextTick } from "node:timers/promises";
import {
  CookieError,
  DYNAMIC_TOOL_LIMITS,
  type ParamsOf,
  type ResultInput,
  type ToolsListChanged,
} from "@cookie-agent/sdk/protocol";
import { createDeferred, type Deferred } from "../support/deferred.ts";
import { claimedName, declarationProblem, judgeDynamicTool } from "./judge-dynamic-tool.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { DynamicFacts, ResolvedTool } from "./plugin-facts.ts";

type ToolList = ParamsOf<typeof ToolsListChanged>;
type ListAnswer = ResultInput<typeof ToolsListChanged>;

export interface DynamicToolsOptions {
  readonly plugin: Pick<LoadedPlugin, "name" | "manifest" | "subject">;
  /** Between two lists that take effect. */
  readonly intervalMs: number;
  /** Who serves a name now, with the list just put in force. */
  ownerOf(name: string): string | undefined;
  /** A list was put in force or withdrawn. */
  onChange(): void;
}

/** Lists that wait for one application all get its answer; a plugin that asks more often does not listen. */
const MAX_WAITING = 256;
/** Declarations judged between two looks at everything else the kernel does. */
const JUDGED_AT_ONCE = 16;

const NOTHING: DynamicFacts = { tools: [], prefixes: [] };

/** What one process lists beside its manifest: replaced as a whole, withdrawn with the process (E-130…E-135). */
export class DynamicTools {
  readonly #options: DynamicToolsOptions;
  /** Declared on demand under a claim; not advertised. */
  readonly #resolved = new Map<string, ResolvedTool>();
  #listed = new Map<string, ResolvedTool>();
  #facts = NOTHING;
  #revision = 0;
  #next: ToolList | undefined;
  #waiting: Deferred<ListAnswer>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #applying = false;
  #appliedAtMs = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: DynamicToolsOptions) {
    this.#options = options;
  }

  get facts(): DynamicFacts {
    return this.#facts;
  }

  /** A tool that is listed, or was declared on demand. */
  find(name: string): ResolvedTool | undefined {
    return this.#listed.get(name) ?? this.#resolved.get(name);
  }

  isClaimed(name: string): boolean {
    return this.#facts.prefixes.some((prefix) => name.startsWith(prefix));
  }

  /**
   * Puts a list in force in place of the one before. Lists that come too fast coalesce: the last one counts, and all
   * get its answer. Rejects with `limit_exceeded`, `busy` or `shutting_down`; then nothing has changed.
   */
  replace(list: ToolList): Promise<ListAnswer> {
    requireWithin(list.tools.length, DYNAMIC_TOOL_LIMITS.tools, "tools");
    requireWithin(list.claims?.length ?? 0, DYNAMIC_TOOL_LIMITS.claims, "claims");
    if (this.#closed) throw ended();
    if (this.#waiting.length >= MAX_WAITING) {
      throw new CookieError("busy", "too many lists of tools wait; send one and await its answer");
    }
    const waiter = createDeferred<ListAnswer>();
    this.#waiting.push(waiter);
    this.#next = list;
    this.#arm();
    return waiter.promise;
  }

  /** Takes the plugin's answer for a claimed name. Rejects with `prepare_failed` when it cannot be used. */
  async declare(name: string, declared: unknown): Promise<ResolvedTool> {
    const tool = await this.#judge(declared).catch((error: unknown) => {
      throw this.#unusable(name, declarationProblem(error));
    });
    if (tool.declaration.name !== name) throw this.#unusable(name, "it names another tool");
    if (this.#closed) throw ended();
    // Whoever still holds the oldest finds that it has vanished.
    const [oldest] = this.#resolved.keys();
    if (this.#resolved.size >= DYNAMIC_TOOL_LIMITS.tools && oldest !== undefined) {
      this.#resolved.delete(oldest);
    }
    this.#resolved.set(name, tool);
    return tool;
  }

  /** The process has gone, and with it everything it listed. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    const hadAny = this.#facts !== NOTHING;
    this.#next = undefined;
    this.#listed.clear();
    this.#resolved.clear();
    this.#facts = NOTHING;
    for (const waiter of this.#waiting.splice(0)) waiter.reject(ended());
    if (hadAny) this.#options.onChange();
  }

  #arm(): void {
    if (this.#applying || this.#timer !== undefined || this.#next === undefined) return;
    const dueMs = this.#appliedAtMs + this.#options.intervalMs - performance.now();
    if (dueMs <= 0) void this.#apply();
    else {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        void this.#apply();
      }, dueMs);
    }
  }

  async #apply(): Promise<void> {
    const list = this.#next;
    if (list === undefined || this.#closed) return;
    this.#next = undefined;
    const waiting = this.#waiting.splice(0);
    this.#applying = true;
    try {
      const { tools, rejected } = await this.#judgeAll(list.tools);
      if (this.#closed) throw ended();
      const answer = this.#putInForce(tools, list.claims ?? []);
      for (const waiter of waiting) waiter.resolve({ ...answer, rejected });
    } catch (error) {
      for (const waiter of waiting) waiter.reject(error);
    } finally {
      this.#applying = false;
      this.#appliedAtMs = performance.now();
      if (!this.#closed) this.#arm();
    }
  }

  async #judgeAll(declared: readonly unknown[]) {
    const tools = new Map<string, ResolvedTool>();
    const rejected: ListAnswer["rejected"] = [];
    for (const [index, one] of declared.entries()) {
      if (index > 0 && index % JUDGED_AT_ONCE === 0) await nextTick();
      try {
        const tool = await this.#judge(one);
        const { name } = tool.declaration;
        if (tools.has(name)) {
          throw new CookieError("invalid_declaration", "the list declares the tool twice");
        }
        tools.set(name, tool);
      } catch (error) {
        const message = declarationProblem(error);
        const tool = claimedName(one);
        rejected.push({ tool, code: "invalid_declaration", message });
        this.#options.plugin.subject.diagnose(
          `the dynamic tool ${tool || `number ${index + 1}`} is not used: ${message}`,
        );
      }
    }
    return { tools, rejected };
  }

  #judge(declared: unknown): Promise<ResolvedTool> {
    return judgeDynamicTool(declared, this.#options.plugin);
  }

  #putInForce(
    tools: Map<string, ResolvedTool>,
    claims: readonly string[],
  ): Omit<ListAnswer, "rejected"> {
    const prefixes = [...new Set(claims.map((claim) => claim.slice(0, -1)))];
    this.#listed = tools;
    this.#facts = { tools: [...tools.values()], prefixes };
    for (const name of this.#resolved.keys()) {
      if (!this.isClaimed(name)) this.#resolved.delete(name);
    }
    this.#revision += 1;
    this.#options.onChange();
    const accepted: string[] = [];
    const shadowed: ListAnswer["shadowed"] = [];
    for (const name of tools.keys()) {
      const owner = this.#options.ownerOf(name);
      if (owner === undefined || owner === this.#options.plugin.name) accepted.push(name);
      else shadowed.push({ tool: name, by: owner });
    }
    return { revision: this.#revision, accepted, shadowed };
  }

  #unusable(name: string, problem: string): CookieError {
    return new CookieError(
      "prepare_failed",
      `the plugin ${this.#options.plugin.name} declared ${name} in a way that cannot be used: ${problem}`,
    );
  }
}

function requireWithin(count: number, limit: number, what: string): void {
  if (count <= limit) return;
  throw new CookieError(
    "limit_exceeded",
    `a list may hold ${limit} ${what}, this one has ${count}`,
    {
      data: { limit },
    },
  );
}

function ended(): CookieError {
  return new CookieError("shutting_down", "the plugin's process has ended");
}
