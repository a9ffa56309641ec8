import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Digest } from "@cookie-agent/sdk/protocol";
import { hasCode } from "../support/has-code.ts";
import { ConfigError } from "./config-error.ts";
import { isLink } from "./is-link.ts";
import { readTrust } from "./trust-store.ts";
import { digestWorkspace, type WorkspaceContent } from "./workspace-digest.ts";

export {
  grantTrust,
  listTrust,
  readTrust,
  revokeTrust,
  type TrustedWorkspace,
} from "./trust-store.ts";
export {
  digestWorkspace,
  type WorkspaceContent,
} from "./workspace-digest.ts";

export interface WorkspaceTrust {
  /** Canonical directory that holds `.cookie-agent`. */
  readonly directory: string;
  /** True when there is a workspace layer at all. */
  readonly present: boolean;
  readonly state: "absent" | "trusted" | "untrusted" | "changed";
  /** Of what was found, when it was hashed. */
  readonly digest?: string;
  /** What was skipped, in words. */
  readonly ignored: readonly string[];
  /** True while the trusted content is still what was loaded; asked before each start of a program it names. */
  stillMatches(): Promise<boolean>;
}

/** Tables of a workspace that count only once it is trusted (C 2.9). */
export const GATED_TABLES: readonly string[] = [
  "providers",
  "plugins",
  "mcp",
  "tools",
  "pricing",
  "server",
];

export interface InspectedWorkspace {
  readonly layerDirectory: string;
  readonly state: WorkspaceTrust["state"];
  readonly digest?: Digest;
  /** Present exactly when trusted: what may be loaded. */
  readonly content?: WorkspaceContent;
  /** Why a wish for trust could not be met. */
  readonly reason?: string;
  readonly warning?: string;
}

export interface InspectOptions {
  readonly root: string;
  readonly cwd: string;
  readonly trust: "stored" | "this_process";
}

/** Finds the workspace layer and decides whether exactly its content is trusted. */
export async function inspectWorkspace(options: InspectOptions): Promise<InspectedWorkspace> {
  const layerDirectory = join(options.cwd, ".cookie-agent");
  if (!(await isOwnLayer(layerDirectory, options.root))) {
    return { layerDirectory, state: "absent" };
  }
  if (options.trust === "this_process") {
    const found = await digestWorkspace(layerDirectory);
    return found.trustable
      ? { layerDirectory, state: "trusted", digest: found.digest, content: found.content }
      : { layerDirectory, state: "untrusted", reason: found.reason };
  }
  const { records, warning } = await readTrust(options.root);
  const record = records.get(options.cwd);
  if (record === undefined) {
    return { layerDirectory, state: "untrusted", ...(warning === undefined ? {} : { warning }) };
  }
  const found = await digestWorkspace(layerDirectory);
  if (!found.trustable) return { layerDirectory, state: "changed", reason: found.reason };
  const { digest, content } = found;
  return digest === record.digest
    ? { layerDirectory, state: "trusted", digest, content }
    : { layerDirectory, state: "changed", digest };
}

/** The facts that leave the loader. */
export function workspaceTrust(
  directory: string,
  { layerDirectory, state, digest }: InspectedWorkspace,
  ignored: readonly string[],
): WorkspaceTrust {
  return {
    directory,
    present: state !== "absent",
    state,
    ...(digest === undefined ? {} : { digest }),
    ignored,
    async stillMatches() {
      if (state !== "trusted") return false;
      const now = await digestWorkspace(layerDirectory);
      return now.trustable && now.digest === digest;
    },
  };
}

/** Agents and skills of a workspace that is not trusted, by number: nothing of them is read. */
export async function countIgnored(layerDirectory: string): Promise<string[]> {
  const agents = await countNames(join(layerDirectory, "agents"), (name) => name.endsWith(".md"));
  const skills = await countNames(join(layerDirectory, "skills"), () => true);
  return [
    ...(agents === 0 ? [] : [agents === 1 ? "1 agent" : `${agents} agents`]),
    ...(skills === 0 ? [] : [skills === 1 ? "1 skill" : `${skills} skills`]),
  ];
}

/** One line that says what was skipped and how to change that. */
export function ignoredNotice(
  { layerDirectory, state, reason }: InspectedWorkspace,
  ignored: readonly string[],
): string | undefined {
  if (ignored.length === 0) return undefined;
  const why =
    reason === undefined
      ? state === "changed"
        ? "changed since it was trusted"
        : "not trusted"
      : `cannot be trusted (${reason})`;
  return `${layerDirectory}: ${why}; ignored: ${ignored.join(", ")}. Run \`cookie trust\` to review it.`;
}

/** False when there is none, or when it is the user layer itself because cwd is the home directory. */
async function isOwnLayer(layerDirectory: string, root: string): Promise<boolean> {
  try {
    const facts = await stat(layerDirectory);
    if (!facts.isDirectory()) {
      throw new ConfigError({
        code: "unsafe_path",
        layer: "workspace",
        path: layerDirectory,
        problem: "is not a directory",
        advice: "remove it",
      });
    }
    const user = await stat(root).catch(() => undefined);
    return user === undefined || user.dev !== facts.dev || user.ino !== facts.ino;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const leadsNowhere = await isLink(layerDirectory);
    if (hasCode(error, "ENOENT", "ENOTDIR") && !leadsNowhere) return false;
    const problem = leadsNowhere ? "is a link that leads nowhere" : "cannot be looked at";
    throw new ConfigError({ code: "io", layer: "workspace", path: layerDirectory, problem });
  }
}

async function countNames(directory: string, counts: (name: string) => boolean): Promise<number> {
  const names = await readdir(directory).catch((): string[] => []);
  return names.filter(counts).length;
}
