import type { ToolsConfig } from "../config/config.ts";
import type { PluginFacts } from "../plugin/plugin-facts.ts";
import { buildSlotTable, type SlotTable } from "./tool-slots.ts";

export interface ToolOwnersOptions {
  plugins(): readonly PluginFacts[];
  /** Changes whenever `plugins` may answer something else. */
  revision(): number;
  tools(): ToolsConfig;
}

/** The slot table as it is now, built anew only when a plugin or the configuration of tools has changed. */
export class ToolOwners {
  readonly #options: ToolOwnersOptions;
  #built:
    | { readonly revision: number; readonly tools: ToolsConfig; readonly table: SlotTable }
    | undefined;

  constructor(options: ToolOwnersOptions) {
    this.#options = options;
  }

  table(): SlotTable {
    const revision = this.#options.revision();
    const tools = this.#options.tools();
    const built = this.#built;
    if (built !== undefined && built.revision === revision && built.tools === tools) {
      return built.table;
    }
    const table = buildSlotTable({ plugins: this.#options.plugins(), tools });
    this.#built = { revision, tools, table };
    return table;
  }

  ownerOf(name: string): string | undefined {
    return this.table().ownerOf(name);
  }
}
