import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../support/has-code.ts";
import type { AgentDocument } from "./agent-document.ts";
import { EXPLORE_AGENT } from "./built-in-agents.ts";
import { compareUtf8 } from "./compare-utf8.ts";
import { ConfigError, type ConfigLayer } from "./config-error.ts";
import { delegationProblem } from "./delegation-problem.ts";
import { isLink } from "./is-link.ts";
import {
  type AgentFile,
  MAX_AGENT_BYTES,
  type ParsedAgent,
  parseAgentDocument,
} from "./parse-agent-document.ts";
import { readConfigFile } from "./read-config-file.ts";
import type { WorkspaceContent } from "./workspace-digest.ts";

const SUFFIX = ".md";

/** The documents of both layers and `explore`, checked against each other (C-072). */
export async function loadAgents(
  files: readonly AgentFile[],
): Promise<ReadonlyMap<string, AgentDocument>> {
  const parsed = new Map<string, ParsedAgent>();
  // User documents come first, so a workspace document replaces the whole of one.
  for (const file of files) parsed.set(file.stem, await parseAgentDocument(file));
  const registry = new Map<string, AgentDocument>([[EXPLORE_AGENT.id, EXPLORE_AGENT]]);
  for (const [id, { document }] of parsed) registry.set(id, document);
  for (const { document, errorAt } of parsed.values()) {
    const problem = delegationProblem(document, registry);
    if (problem !== undefined) throw errorAt(problem);
  }
  return new Map([...registry].sort(([a], [b]) => compareUtf8(a, b)));
}

/** Reads `agents/*.md` of the user layer, sorted by name; links are followed, other regular files ignored (C-071). */
export async function readUserAgents(layerDirectory: string): Promise<AgentFile[]> {
  const directory = join(layerDirectory, "agents");
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    const isAbsent = hasCode(error, "ENOENT");
    if (isAbsent && !(await isLink(directory))) return [];
    throw pathError(
      "user",
      directory,
      isAbsent || hasCode(error, "ENOTDIR") ? "unsafe_path" : "io",
    );
  }
  const files: AgentFile[] = [];
  for (const name of names.sort(compareUtf8)) {
    const path = join(directory, name);
    if (!name.endsWith(SUFFIX)) {
      await insistOnRegular(path);
      continue;
    }
    const bytes = await readConfigFile({ layer: "user", path, maxBytes: MAX_AGENT_BYTES });
    // A name without a file was deleted in between.
    if (bytes === undefined) continue;
    files.push({ layer: "user", path, stem: name.slice(0, -SUFFIX.length), bytes });
  }
  return files;
}

/** Agent files among the hashed content of a trusted workspace, by path relative to its layer directory. */
export function workspaceAgents(layerDirectory: string, content: WorkspaceContent): AgentFile[] {
  const files: AgentFile[] = [];
  for (const [relative, entry] of content) {
    if (relative === "agents" && entry.kind !== "directory") {
      throw pathError("workspace", join(layerDirectory, relative), "unsafe_path");
    }
    const [folder, name, deeper] = relative.split("/");
    if (folder !== "agents" || name === undefined || deeper !== undefined) continue;
    const path = join(layerDirectory, relative);
    if (entry.kind !== "file") throw pathError("workspace", path, "unsafe_path");
    if (entry.bytes === undefined) continue;
    const stem = name.slice(0, -SUFFIX.length);
    files.push({ layer: "workspace", path, stem, bytes: entry.bytes });
  }
  return files;
}

async function insistOnRegular(path: string): Promise<void> {
  const facts = await stat(path).catch(() => undefined);
  if (facts !== undefined && !facts.isFile()) throw pathError("user", path, "unsafe_path");
}

function pathError(layer: ConfigLayer, path: string, code: "unsafe_path" | "io"): ConfigError {
  return code === "io"
    ? new ConfigError({ code, layer, path, problem: "cannot be read", advice: "check its rights" })
    : new ConfigError({
        code,
        layer,
        path,
        problem: "expected a directory agents with regular files",
        advice: "remove it",
      });
}
