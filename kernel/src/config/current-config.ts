import type { Config } from "./config.ts";
import type { LoadConfigOptions, LoadedConfig } from "./load-config.ts";
import type { PluginEntry } from "./plugin-entry.ts";
import type { WorkspaceTrust } from "./workspace-trust.ts";

type Trust = LoadConfigOptions["trust"];

export interface CurrentConfigOptions {
  readonly loaded: LoadedConfig;
  readonly trust: Trust;
  /** Reads both layers anew; rejects with `ConfigError` when they cannot be used. */
  load(trust: Trust): Promise<LoadedConfig>;
}

/** The part of the configuration that a running kernel takes anew when it is asked to: plugins and tools (E-064). */
export class CurrentConfig {
  readonly #options: CurrentConfigOptions;
  #tools: Config["tools"];
  #entries: readonly PluginEntry[];
  #secretEnvNames: ReadonlySet<string>;
  #workspace: WorkspaceTrust;

  constructor(options: CurrentConfigOptions) {
    const { config, secretEnvNames, workspace } = options.loaded;
    this.#options = options;
    this.#tools = config.tools;
    this.#entries = config.plugins;
    this.#secretEnvNames = secretEnvNames;
    this.#workspace = workspace;
  }

  get tools(): Config["tools"] {
    return this.#tools;
  }

  get entries(): readonly PluginEntry[] {
    return this.#entries;
  }

  /** Names read into secrets, those of earlier readings included: their values are still in use. */
  get secretEnvNames(): ReadonlySet<string> {
    return this.#secretEnvNames;
  }

  workspaceStillTrusted(): Promise<boolean> {
    return this.#workspace.stillMatches();
  }

  /** When it rejects, nothing has changed. */
  async reload(): Promise<void> {
    const { load } = this.#options;
    const { config, workspace, secretEnvNames } = await load(await this.#trustNow());
    const isTrusted = workspace.state === "trusted";
    // What a workspace named before it changed stays named, so that it fails with that reason instead of vanishing.
    const orphans = isTrusted
      ? []
      : this.#entries.filter(
          ({ name, layer }) =>
            layer === "workspace" && !config.plugins.some((entry) => entry.name === name),
        );
    if (isTrusted) this.#workspace = workspace;
    this.#tools = config.tools;
    this.#entries = [...config.plugins, ...orphans];
    this.#secretEnvNames = new Set([...this.#secretEnvNames, ...secretEnvNames]);
  }

  /** Trust for this process is trust in what was there at its start (C-237). */
  async #trustNow(): Promise<Trust> {
    const { trust, loaded } = this.#options;
    return trust === "this_process" && (await loaded.workspace.stillMatches())
      ? "this_process"
      : "stored";
  }
}
