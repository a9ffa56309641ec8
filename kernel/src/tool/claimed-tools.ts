import type { PluginFacts, ResolvedTool } from "../plugin/plugin-facts.ts";
import type { PluginHost } from "../plugin/plugin-host.ts";
import { untilAborted } from "../support/deadline.ts";

export type Resolver = Pick<PluginHost, "resolveTool">;

/** A model may name anything; beyond this nothing of it is remembered. */
const MAX_REMEMBERED = 1024;

/** The tools of one run that exist only once they are named (E-133). */
export class ClaimedTools<Bound> {
  readonly #claimantOf: (name: string) => PluginFacts | undefined;
  readonly #bind: (facts: PluginFacts, tool: ResolvedTool) => Bound | undefined;
  readonly #asked = new Map<string, Promise<Bound | undefined>>();
  readonly #bound = new Map<string, Bound>();

  /**
   * @param claimantOf The plugin whose claim, as it was when the run was admitted, holds the name.
   * @param bind Undefined when the run may not see the tool.
   */
  constructor(
    claimantOf: (name: string) => PluginFacts | undefined,
    bind: (facts: PluginFacts, tool: ResolvedTool) => Bound | undefined,
  ) {
    this.#claimantOf = claimantOf;
    this.#bind = bind;
  }

  get(name: string): Bound | undefined {
    return this.#bound.get(name);
  }

  /** Rejects as `PluginHost.resolveTool` does; the next call of the name then asks again. */
  async resolve(name: string, plugins: Resolver, signal: AbortSignal): Promise<Bound | undefined> {
    const claimant = this.#claimantOf(name);
    if (claimant === undefined) return undefined;
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      asked = this.#ask(name, claimant, plugins);
      if (this.#asked.size < MAX_REMEMBERED) this.#asked.set(name, asked);
    }
    return untilAborted(asked, signal, "the call was cancelled");
  }

  /** Without a signal: several calls may wait, and the request has a bound of its own. */
  async #ask(name: string, claimant: PluginFacts, plugins: Resolver): Promise<Bound | undefined> {
    try {
      const tool = await plugins.resolveTool(claimant.name, name, new AbortController().signal);
      const bound = tool === null ? undefined : this.#bind(claimant, tool);
      if (bound !== undefined) this.#bound.set(name, bound);
      return bound;
    } catch (error) {
      this.#asked.delete(name);
      throw error;
    }
  }
}
