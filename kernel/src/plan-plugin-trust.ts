import { readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { CookieError, isCookieError } from "@cookie-agent/sdk/protocol";
import { editPluginTrust } from "./config/edit-plugin-trust.ts";
import { loadConfig } from "./config/load-config.ts";
import type { OpenKernelOptions } from "./kernel.ts";
import { loadFirstParty, readManifestFile } from "./plugin/load-manifest.ts";
import { durableReplace } from "./support/durable-replace.ts";
import { withFileLock } from "./support/file-lock.ts";

/** What trusting a configured plugin would change: its manifest pinned in the user's file (E-112). */
export interface PluginTrustPlan {
  readonly directory: string;
  readonly digest: string;
  readonly configFile: string;
  /** True: the entry says so already. */
  readonly done: boolean;
  apply(): Promise<void>;
}

/** Throws when the user's own configuration has no such plugin, or one without a manifest. */
export async function planPluginTrust(
  options: Pick<OpenKernelOptions, "homeDir" | "cwd" | "env" | "firstPartyDirectories">,
  name: string,
): Promise<PluginTrustPlan> {
  const firstParty = await loadFirstParty(options.firstPartyDirectories);
  const { homeDir, cwd, env } = options;
  const { config, root } = await loadConfig({ homeDir, cwd, env, firstParty, trust: "stored" });
  const configFile = join(root, "config.toml");
  const entry = config.plugins.find((candidate) => candidate.name === name);
  if (firstParty.some(({ id }) => id === name)) {
    throw new CookieError("invalid_params", `${name} is shipped and needs no trust`);
  }
  if (entry === undefined || entry.layer !== "user") {
    const key = /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
    throw new CookieError(
      "invalid_params",
      `your own configuration has no plugin ${name}; add [plugins.${key}] to ${configFile} first`,
    );
  }
  const { launch } = entry;
  if ((launch.kind !== "path" && launch.kind !== "package") || launch.directory === null) {
    throw new CookieError(
      "invalid_params",
      `the plugin ${name} has no manifest that could be pinned; only one with a path or package can be trusted`,
    );
  }
  const { digest } = await readManifestFile(launch.directory);
  return {
    directory: launch.directory,
    digest,
    configFile,
    done: entry.trust === "trusted" && entry.integrity === digest,
    apply: () =>
      changeFile(configFile, root, (text) => editPluginTrust(text, name, digest)).catch((error) => {
        if (isCookieError(error)) throw error;
        const why = error instanceof Error ? error.message : String(error);
        throw new CookieError(
          "io",
          `${configFile} cannot be changed (${why}); make it writable, or write trust = "trusted" and integrity = "${digest}" there`,
          { cause: error },
        );
      }),
  };
}

/** One change at a time, each upon the one before; a link stays one, and the file keeps its mode. */
function changeFile(
  path: string,
  root: string,
  edit: (text: string) => Promise<string>,
): Promise<void> {
  return withFileLock(join(root, "trust.lock"), async () => {
    const target = await realpath(path);
    const { mode } = await stat(target);
    const before = await readFile(target, "utf8");
    const edited = await edit(before);
    // An editor takes no lock (C-070).
    const confirm = async () => {
      if ((await readFile(target, "utf8")) === before) return;
      throw new CookieError(
        "changed_on_disk",
        `${path} was changed meanwhile and is left as it is; try again`,
      );
    };
    await durableReplace(target, Buffer.from(edited), { mode: mode & 0o777, confirm });
  });
}
