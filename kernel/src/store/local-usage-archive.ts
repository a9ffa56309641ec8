import type { Dirent, Stats } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionId, SessionOrigin } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { hasCode } from "../support/has-code.ts";
import { StoredUsage } from "../usage/stored-usage.ts";
import { LocalLogFile } from "./local-log-file.ts";
import { logPath, metadataPath } from "./metadata-file.ts";
import { checkLayout } from "./store-layout.ts";
import type { ArchivedSession, ArchiveScope, UsageArchive } from "./usage-archive.ts";
import { isWorkdirKey } from "./workdir-key.ts";

const CHILDREN = "subagents";
/** Sessions that are looked at together. */
const BATCH = 64;
const MAX_METADATA_BYTES = 1024 * 1024;

const Cache = z.object({
  session_id: SessionId,
  origin: SessionOrigin,
  usage: StoredUsage.optional().catch(undefined),
});

export interface LocalUsageArchiveOptions {
  /** `<data root>/sessions`. */
  readonly sessionsDir: string;
  /** The store of this work directory; it need not exist. */
  readonly directory: string;
}

/** The stores below the data root as files. */
export function createLocalUsageArchive(options: LocalUsageArchiveOptions): UsageArchive {
  return {
    async *trees(scope, onDiagnostic) {
      for (const store of await storesOf(options, scope)) yield* treesOf(store, onDiagnostic);
    },
    tree: (rootId, onProblem) => readTree(options.directory, rootId, onProblem),
  };
}

async function storesOf(
  { sessionsDir, directory }: LocalUsageArchiveOptions,
  scope: ArchiveScope,
): Promise<string[]> {
  if (scope === "directory") return [directory];
  const names = (await entriesIn(sessionsDir)).flatMap((entry) =>
    entry.isDirectory() && isWorkdirKey(entry.name) ? [entry.name] : [],
  );
  return names.sort().map((name) => join(sessionsDir, name));
}

async function* treesOf(
  store: string,
  onDiagnostic: (text: string) => void,
): AsyncGenerator<readonly ArchivedSession[]> {
  let roots: SessionId[];
  try {
    await checkLayout(store);
    roots = await sessionIdsIn(store);
  } catch (error) {
    onDiagnostic(problemOf(error));
    return;
  }
  const onProblem = (error: unknown, sessionId: SessionId) =>
    onDiagnostic(`session ${sessionId}: ${problemOf(error)}`);
  for (let from = 0; from < roots.length; from += BATCH) {
    const batch = roots.slice(from, from + BATCH);
    yield* await Promise.all(batch.map((rootId) => readTree(store, rootId, onProblem)));
  }
}

interface SessionDirectory {
  readonly path: string;
  readonly sessionId: SessionId;
  readonly rootId: SessionId;
}

async function readTree(
  store: string,
  rootId: SessionId,
  onProblem: (error: unknown, sessionId: SessionId) => void,
): Promise<ArchivedSession[]> {
  const root = join(store, rootId);
  let children: SessionId[] = [];
  try {
    children = await sessionIdsIn(join(root, CHILDREN));
  } catch (error) {
    onProblem(error, rootId);
  }
  const directories = [
    { path: root, sessionId: rootId, rootId },
    ...children.map((sessionId) => ({ path: join(root, CHILDREN, sessionId), sessionId, rootId })),
  ];
  const readings = await Promise.allSettled(directories.map(readSession));
  return readings.flatMap((reading, index) => {
    if (reading.status === "fulfilled") return reading.value ?? [];
    onProblem(reading.reason, directories[index]?.sessionId ?? rootId);
    return [];
  });
}

/** Null for what has no log: no session, or one that is just being published. */
async function readSession(directory: SessionDirectory): Promise<ArchivedSession | null> {
  const { path, sessionId, rootId } = directory;
  // The cache first: a log that grows in between is then longer than the cache says.
  const cache = await readCache(metadataPath(path), sessionId);
  const log = await statOf(logPath(path));
  if (log === null) return null;
  return {
    sessionId,
    rootId,
    origin: cache?.origin ?? null,
    usage: cache?.usage?.log_bytes === log.size ? cache.usage : null,
    openLog: () => LocalLogFile.open(logPath(path)),
  };
}

async function readCache(path: string, sessionId: SessionId) {
  const stats = await statOf(path);
  if (!stats?.isFile() || stats.size > MAX_METADATA_BYTES) return null;
  const parsed = Cache.safeParse(parseJson(await readFile(path, "utf8")));
  return parsed.success && parsed.data.session_id === sessionId ? parsed.data : null;
}

async function sessionIdsIn(directory: string): Promise<SessionId[]> {
  return (await entriesIn(directory)).flatMap((entry) => {
    const parsed = SessionId.safeParse(entry.name);
    return entry.isDirectory() && parsed.success ? [parsed.data] : [];
  });
}

async function entriesIn(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

async function statOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return null;
    throw error;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
