import { ToolsListChanged } from "../protocol/dynamic-tools.ts";
import { CookieError, isCookieError } from "../protocol/errors.ts";
import { DYNAMIC_TOOL_LIMITS } from "../protocol/limits.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { declareTool } from "./create-manifest.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { writeLog } from "./host-client.ts";
import type { SetToolsOptions, ToolListOutcome, ToolTable } from "./tool-table.ts";

const ANSWER_TIMEOUT_MS = 30_000;

/** The tools that a running plugin adds to those of its manifest (E-130…E-133). */
export class DynamicToolList {
  readonly #plugin: string;
  readonly #connection: Connection;
  /** In force first, then lists that the kernel has not answered yet: a call may belong to any of them. */
  #lists: ToolTable[] = [{}];
  readonly #resolved = new Map<string, ToolDefinition>();
  #introduced = false;
  #held: { readonly tools: ToolTable; readonly options: SetToolsOptions } | undefined;

  constructor(plugin: string, connection: Connection) {
    this.#plugin = plugin;
    this.#connection = connection;
  }

  find(name: string): ToolDefinition | undefined {
    for (const list of this.#lists) {
      if (Object.hasOwn(list, name)) return list[name];
    }
    return this.#resolved.get(name);
  }

  /** Null while the plugin starts: the list is sent as soon as the kernel knows the plugin (E-022). */
  async set(tools: ToolTable, options: SetToolsOptions = {}): Promise<ToolListOutcome | null> {
    if (this.#introduced) return this.#send(tools, options);
    this.#declare(tools);
    this.#held = { tools, options };
    return null;
  }

  /** To be called right after the answer to `plugin/initialize` was handed over. */
  introduced(): void {
    this.#introduced = true;
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#send(held.tools, held.options).catch((error: unknown) => {
      const problem = isCookieError(error) ? `${error.code}: ${error.message}` : "internal error";
      writeLog(this.#connection, "error", `the list of tools was not taken: ${problem}`);
    });
  }

  /** The declaration of a tool that was asked for by name; kept for its calls. */
  keep(name: string, tool: ToolDefinition): JsonObject {
    const declared = declareTool(name, tool);
    const [oldest] = this.#resolved.keys();
    if (this.#resolved.size >= DYNAMIC_TOOL_LIMITS.tools && oldest !== undefined)
      this.#resolved.delete(oldest);
    this.#resolved.set(name, tool);
    return declared;
  }

  async #send(tools: ToolTable, { claims }: SetToolsOptions): Promise<ToolListOutcome> {
    const declared = this.#declare(tools);
    this.#lists.push(tools);
    try {
      const outcome = await this.#connection.request(
        ToolsListChanged,
        { tools: declared, ...(claims === undefined ? {} : { claims: [...claims] }) },
        { timeoutMs: ANSWER_TIMEOUT_MS },
      );
      // Lists sent before this one have been replaced by it, wherever their answers are.
      const place = this.#lists.indexOf(tools);
      if (place >= 0) this.#lists = this.#lists.slice(place);
      for (const { tool, message } of outcome.rejected) {
        writeLog(this.#connection, "warn", `the tool ${tool} was refused: ${message}`);
      }
      return outcome;
    } catch (error) {
      const place = this.#lists.lastIndexOf(tools);
      if (place > 0) this.#lists.splice(place, 1);
      throw error;
    }
  }

  #declare(tools: ToolTable): JsonObject[] {
    return Object.entries(tools).map(([name, tool]) => {
      try {
        return declareTool(name, tool);
      } catch (error) {
        const problem = error instanceof Error ? error.message : "cannot be described";
        throw new CookieError(
          "invalid_declaration",
          `plugin ${this.#plugin}: tools.${name}: ${problem}`,
          { cause: error },
        );
      }
    });
  }
}
