import { existsSync } from "node:fs";
import { realpath, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { CookieError, isCookieError } from "@cookie-agent/sdk/protocol";
import { describeWorkspace } from "./config/describe-workspace.ts";
import { type LoadedConfig, loadConfig } from "./config/load-config.ts";
import {
  digestWorkspace,
  inspectWorkspace,
  listTrust as readRecords,
  readTrust,
  revokeTrust as removeTrust,
  grantTrust as storeTrust,
  type TrustedWorkspace,
  type WorkspaceTrust,
} from "./config/workspace-trust.ts";
import type { OpenKernelOptions } from "./kernel.ts";
import { loadFirstParty } from "./plugin/load-manifest.ts";
import { tryFileLock } from "./support/file-lock.ts";

export interface SetupReport {
  /** `<homeDir>/.cookie-agent`. */
  readonly root: string;
  readonly layers: readonly {
    readonly layer: "user" | "workspace";
    readonly path: string;
    readonly present: boolean;
  }[];
  /** The first error of the configuration; null when it loads. */
  readonly problem: string | null;
  readonly workspace: Pick<WorkspaceTrust, "directory" | "state">;
  /** Where the configured providers lie. */
  readonly endpoints: readonly { readonly provider: string; readonly url: string }[];
  /** Configured providers that only a model catalog could describe; without one they have no models. */
  readonly catalogProviders: readonly string[];
}

/** What is configured here, without opening anything; an invalid configuration is part of the answer. */
export async function inspectSetup(
  options: Pick<OpenKernelOptions, "homeDir" | "cwd" | "env" | "firstPartyDirectories">,
): Promise<SetupReport> {
  const root = stateRoot(options.homeDir);
  const cwd = await realpath(options.cwd);
  const files = [
    { layer: "user" as const, path: join(root, "config.toml") },
    { layer: "workspace" as const, path: join(cwd, ".cookie-agent", "config.toml") },
  ];
  const { state } = await inspectWorkspace({ root, cwd, trust: "stored" });
  const loaded = await load(options, cwd);
  return {
    root,
    layers: files.map((file) => ({ ...file, present: existsSync(file.path) })),
    problem: "problem" in loaded ? loaded.problem : null,
    workspace: { directory: cwd, state },
    endpoints: "problem" in loaded ? [] : endpointsOf(loaded),
    catalogProviders: "problem" in loaded ? [] : catalogProvidersOf(loaded),
  };
}

async function load(
  options: Pick<OpenKernelOptions, "homeDir" | "env" | "firstPartyDirectories">,
  cwd: string,
): Promise<LoadedConfig | { problem: string }> {
  try {
    const firstParty = await loadFirstParty(options.firstPartyDirectories);
    const { homeDir, env } = options;
    return await loadConfig({ homeDir, cwd, env, firstParty, trust: "stored" });
  } catch (error) {
    if (isCookieError(error)) return { problem: error.message };
    throw error;
  }
}

function endpointsOf({ config }: LoadedConfig): SetupReport["endpoints"] {
  return [...config.providers.values()].flatMap((provider) =>
    "endpoint" in provider ? [{ provider: provider.id, url: provider.endpoint }] : [],
  );
}

function catalogProvidersOf({ config }: LoadedConfig): string[] {
  const providers = [...config.providers.values()];
  return providers.filter(({ source }) => source === "models_dev").map(({ id }) => id);
}

export interface WorkspaceContents {
  /** Canonical directory. */
  readonly directory: string;
  readonly present: boolean;
  /** Of what is there now; trust is given for exactly this. */
  readonly digest: string | null;
  /** Files that would be trusted, or why they cannot be. */
  readonly contents: readonly string[];
  /** What trust would put to use, one line each; empty when it would change nothing. */
  readonly brings: readonly string[];
}

/** What a directory's own `.cookie-agent` holds, for the question whether to trust it (C 2.9). */
export async function inspectContents(directory: string): Promise<WorkspaceContents> {
  const canonical = await existingDirectory(directory);
  const layer = join(canonical, ".cookie-agent");
  if (!existsSync(layer)) {
    return { directory: canonical, present: false, digest: null, contents: [], brings: [] };
  }
  const found = await digestWorkspace(layer);
  return found.trustable
    ? {
        directory: canonical,
        present: true,
        digest: found.digest,
        contents: [...found.content.keys()].sort(),
        brings: await describeWorkspace(layer, found.content),
      }
    : { directory: canonical, present: true, digest: null, contents: [found.reason], brings: [] };
}

export interface WorkspaceReview extends WorkspaceContents {
  readonly state: WorkspaceTrust["state"];
}

/** The same with the trust that is stored for it; `absent` also where it is the user's own layer. */
export async function reviewWorkspace(
  homeDir: string,
  directory: string,
): Promise<WorkspaceReview> {
  const root = stateRoot(homeDir);
  const contents = await inspectContents(directory);
  const { state } = await inspectWorkspace({ root, cwd: contents.directory, trust: "stored" });
  return { ...contents, state };
}

async function existingDirectory(directory: string): Promise<string> {
  try {
    return await realpath(directory);
  } catch (error) {
    throw new CookieError("io", `the directory ${directory} cannot be found`, { cause: error });
  }
}

export function grantTrust(homeDir: string, directory: string, digest: string): Promise<void> {
  return storeTrust({ root: stateRoot(homeDir), directory, digest });
}

/** Also takes back the trust of a directory that is gone. */
export async function revokeTrust(homeDir: string, directory: string): Promise<boolean> {
  const canonical = await realpath(directory).catch(() => resolve(directory));
  return removeTrust({ root: stateRoot(homeDir), directory: canonical });
}

/** Every trusted directory, and a warning when the store cannot be understood. */
export async function listTrust(
  homeDir: string,
): Promise<{ workspaces: TrustedWorkspace[]; warning: string | undefined }> {
  const root = stateRoot(homeDir);
  return { workspaces: await readRecords(root), warning: (await readTrust(root)).warning };
}

/** Null when a file in this directory can be locked, else why not. */
export async function probeFileLock(directory: string): Promise<string | null> {
  const path = join(directory, `.lock-probe-${process.pid}`);
  try {
    const lock = await tryFileLock(path);
    lock?.release();
    return lock === undefined ? `${directory}: a new file is already locked` : null;
  } catch (error) {
    return `${directory}: ${error instanceof Error ? error.message : "unknown"}`;
  } finally {
    await rm(path, { force: true }).catch(() => undefined);
  }
}

function stateRoot(homeDir: string): string {
  return join(homeDir, ".cookie-agent");
}
