import { constants, existsSync } from "node:fs";
import { access } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import {
  CookieError,
  checkValue,
  isCookieError,
  Manifest,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import { ENTRY_DEFAULTS } from "./config/plugin-entry.ts";
import { loadFirstParty, parseManifest, readManifestFile } from "./plugin/load-manifest.ts";
import { slotActions } from "./plugin/load-plugins.ts";
import { locateMember } from "./plugin/locate-member.ts";
import { applyTier } from "./plugin/trust-tier.ts";
import { hasCode } from "./support/has-code.ts";
import { safeText } from "./support/safe-text.ts";

export interface PluginProblem {
  /** As `tools.echo.parameters`; the tool stands there by its name. */
  readonly member: string;
  /** In `cookie-plugin.json`, from 1. */
  readonly line: number;
  readonly problem: string;
}

export interface PluginInspection {
  readonly directory: string;
  readonly name: string | null;
  readonly version: string | null;
  readonly digest: string;
  readonly tools: readonly string[];
  /** What keeps the plugin from loading at every tier below first party. */
  readonly problems: readonly PluginProblem[];
  /** What each tier makes of it. */
  readonly tiers: readonly {
    readonly tier: Exclude<TrustTier, "first_party">;
    /** Why it cannot be used there; null when it can. */
    readonly failure: PluginProblem | null;
    /** What is taken back there. */
    readonly notes: readonly string[];
  }[];
}

/** What the kernel would make of a plugin's folder, without running any of its code (E-030, E-034, E-114). */
export async function inspectPlugin(
  directory: string,
  firstPartyDirectories: readonly string[],
): Promise<PluginInspection> {
  const { bytes, digest } = await readManifestFile(directory).catch((error: unknown) => {
    throw isCookieError(error) ? withFolder(directory, error) : error;
  });
  // A byte order mark goes here, as when the kernel loads it.
  const text = new TextDecoder("utf-8").decode(bytes);
  const none = { directory, digest, name: null, version: null, tools: [], tiers: [] };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ...none, problems: [syntaxProblem(text, error)] };
  }
  const checked = checkValue(Manifest, value);
  if (!checked.ok) {
    const problems = checked.problems.map(({ path, problem }) => placed(text, path, problem));
    return { ...none, problems };
  }
  const manifest = checked.value;
  const slots = slotActions(await loadFirstParty(firstPartyDirectories));
  const tiers = [];
  for (const tier of ["untrusted", "trusted"] as const) {
    const notes: string[] = [];
    let failure: PluginProblem | null = null;
    try {
      await parseManifest(bytes, manifest.name, tier);
      applyTier(manifest, {
        name: manifest.name,
        tier,
        grants: new Set(),
        toolTimeoutMs: ENTRY_DEFAULTS.toolTimeoutMs,
        slotActions: slots,
        diagnose: (note) => notes.push(note),
      });
    } catch (error) {
      failure = problemOf(text, error);
    }
    tiers.push({ tier, failure, notes });
  }
  const [untrusted, trusted] = tiers.map(({ failure }) => failure);
  // What both refuse for the same reason is wrong with the file, and no question of trust.
  const shared =
    untrusted !== null && untrusted?.member === trusted?.member && untrusted !== undefined
      ? [untrusted]
      : [];
  return {
    directory,
    digest,
    name: manifest.name,
    version: manifest.version,
    tools: (manifest.tools ?? []).map(({ name }) => name),
    problems: [...shared, ...(await runtimeProblems(text, manifest, directory))],
    tiers,
  };
}

/** The folder is what the user named, so it is what the user can put right. */
function withFolder(directory: string, error: CookieError): CookieError {
  if (!hasCode(error.cause, "ENOENT", "ENOTDIR")) return error;
  return new CookieError(
    "invalid_declaration",
    `there is no cookie-plugin.json in ${directory}; name the folder of a plugin, and build it first if its build writes the manifest`,
    { cause: error },
  );
}

function syntaxProblem(text: string, error: unknown): PluginProblem {
  const message = error instanceof Error ? error.message : "";
  const line = /line (\d+)/.exec(message)?.[1];
  const position = /position (\d+)/.exec(message)?.[1];
  const why = message.replace(/ in JSON at position.*| \(line.*|, ".*$/s, "");
  return {
    member: "the file",
    line:
      line !== undefined
        ? Number(line)
        : text.slice(0, position === undefined ? text.length : Number(position)).split("\n").length,
    problem: `not JSON in UTF-8${why === "" ? "" : `: ${safeText(why, 200)}`}`,
  };
}

/** The kernel words its refusals as "file: member: problem". */
function problemOf(text: string, error: unknown): PluginProblem {
  if (!isCookieError(error)) throw error;
  const message = error.message.replace(/^cookie-plugin\.json: /, "");
  const { member } = error.data;
  if (typeof member === "string") {
    return placed(text, member.split("."), message.replace(`${member}: `, ""));
  }
  const [, where, problem] = /^([\w.$-]+): (.*)$/s.exec(message) ?? [];
  if (where !== undefined && problem !== undefined) return placed(text, where.split("."), problem);
  return placed(text, [error.code === "version_mismatch" ? "protocol" : "the file"], message);
}

function placed(text: string, path: readonly string[], problem: string): PluginProblem {
  return { member: path.join(".") || "the file", line: locateMember(text, path), problem };
}

async function runtimeProblems(
  text: string,
  { runtime }: Manifest,
  directory: string,
): Promise<PluginProblem[]> {
  if (runtime.kind === "node") {
    if (existsSync(join(directory, runtime.entry))) return [];
    return [
      placed(text, ["runtime", "entry"], `${runtime.entry} does not exist; build the plugin`),
    ];
  }
  const { command } = runtime;
  if (!/[/\\]/.test(command)) return [];
  const file = isAbsolute(command) ? command : join(directory, command);
  if (!existsSync(file)) return [placed(text, ["runtime", "command"], `${command} does not exist`)];
  try {
    await access(file, constants.X_OK);
    return [];
  } catch {
    const problem = `${command} cannot be executed; run chmod +x on it`;
    return [placed(text, ["runtime", "command"], problem)];
  }
}
