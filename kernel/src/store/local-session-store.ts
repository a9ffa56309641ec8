import type { Dirent } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { CookieError, SessionId } from "@cookie-agent/sdk/protocol";
import { syncDirectory } from "../support/durable-replace.ts";
import type { FileLock } from "../support/file-lock.ts";
import { hasCode } from "../support/has-code.ts";
import { KeyMutex } from "../support/key-mutex.ts";
import { makeDirectory } from "../support/make-directory.ts";
import { readCrossReferences, recordCrossReferences } from "./cross-references.ts";
import { LocalLogFile } from "./local-log-file.ts";
import { logPath, readMetadataFile, replaceMetadataFile } from "./metadata-file.ts";
import { publishSession, removeRemains } from "./publish-session.ts";
import { sessionForeign } from "./session-foreign.ts";
import type {
  CrossReference,
  LogFile,
  SessionLocation,
  SessionPublication,
  SessionStore,
  StoredMetadata,
  TreeLease,
} from "./session-store.ts";
import { initializeStore, listProjects, locateStore } from "./store-layout.ts";
import { LocalTreeLease, stagedLockPath, treeLockPath, tryTreeLock } from "./tree-lock.ts";

const CHILDREN = "subagents";
/** How long a listing reads before other work gets a turn. */
const TURN_MS = 5;
const nextTurn = promisify(setImmediate);

export interface LocalSessionStoreOptions {
  /** `<data root>/sessions`. */
  readonly sessionsDir: string;
  /** Canonical. */
  readonly cwd: string;
  /** Folds a root's log when its cache does not parse (S-075); without it such a root is only reported. */
  rebuildMetadata?(location: SessionLocation): Promise<StoredMetadata>;
}

/** Opens the store of one working directory; refuses an unknown layout. Nothing is written before a publication. */
export async function openLocalSessionStore(
  options: LocalSessionStoreOptions,
): Promise<SessionStore> {
  const { directory, diagnostics } = await locateStore(options.sessionsDir, options.cwd);
  return new LocalSessionStore(options, directory, diagnostics);
}

class LocalSessionStore implements SessionStore {
  readonly directory: string;
  readonly #options: LocalSessionStoreOptions;
  readonly #diagnostics: readonly string[];
  readonly #leases = new Map<SessionId, LocalTreeLease>();
  readonly #trees = new KeyMutex();
  /** Whose publication failed here: what a failing disk left of them is not theirs. */
  readonly #unpublished = new Set<SessionId>();
  #initialized: Promise<void> | undefined;

  constructor(
    options: LocalSessionStoreOptions,
    directory: string,
    diagnostics: readonly string[],
  ) {
    this.directory = directory;
    this.#options = options;
    this.#diagnostics = diagnostics;
  }

  async list(everywhere = false): Promise<{ sessions: StoredMetadata[]; diagnostics: string[] }> {
    const sessions: StoredMetadata[] = [];
    const diagnostics = [...this.#diagnostics];
    for (const cwd of everywhere ? await listProjects(this.#options.sessionsDir) : []) {
      if (cwd === this.#options.cwd) continue;
      try {
        const { sessionsDir } = this.#options;
        const listed = await (await openLocalSessionStore({ sessionsDir, cwd })).list();
        sessions.push(...listed.sessions);
        diagnostics.push(...listed.diagnostics);
      } catch (error) {
        diagnostics.push(`${cwd}: ${problemOf(error)}`);
      }
    }
    const rootIds = await sessionIdsIn(this.directory);
    let turnEndMs = performance.now() + TURN_MS;
    for (const rootId of rootIds) {
      try {
        const metadata = await this.#readRoot(rootId);
        if (metadata !== undefined) sessions.push(metadata);
      } catch (error) {
        diagnostics.push(`session ${rootId}: ${problemOf(error)}`);
      }
      if (performance.now() < turnEndMs) continue;
      await nextTurn();
      turnEndMs = performance.now() + TURN_MS;
    }
    return { sessions, diagnostics };
  }

  async roots(): Promise<SessionId[]> {
    return (await sessionIdsIn(this.directory)).sort();
  }

  async find(sessionId: SessionId): Promise<SessionLocation | undefined> {
    const asRoot = { sessionId, rootId: sessionId };
    const isRoot = await holdsLog(this.#directoryOf(asRoot)).catch((error: unknown) => {
      throw unopened(sessionId, error);
    });
    if (isRoot) return asRoot;
    for (const rootId of await sessionIdsIn(this.directory)) {
      const location = { sessionId, rootId };
      if (await holdsLog(this.#directoryOf(location))) return location;
    }
    return undefined;
  }

  acquire(rootId: SessionId): Promise<TreeLease | undefined> {
    return this.#withTree(rootId, async () => {
      const held = this.#leases.get(rootId);
      if (held !== undefined) return held;
      const lease = await this.#take(rootId, treeLockPath(this.directory, rootId));
      if (lease !== undefined) {
        const { sweepTree } = await import("./sweep-leftovers.ts");
        const root = join(this.directory, rootId);
        sweepTree(root, join(root, CHILDREN));
      }
      return lease;
    });
  }

  access(rootId: SessionId): Promise<"owned" | "free" | "foreign"> {
    return this.#withTree(rootId, async () => {
      if (this.#leases.has(rootId)) return "owned";
      const path = treeLockPath(this.directory, rootId);
      if (!(await exists(path))) return "free";
      const lock = await tryTreeLock(path);
      lock?.release();
      return lock === undefined ? "foreign" : "free";
    });
  }

  publish(publication: SessionPublication): Promise<{ lease: TreeLease; file: LogFile }> {
    const { rootId, sessionId } = publication;
    return this.#withTree(rootId, async () => {
      await this.#initialize();
      const target = this.#directoryOf(publication);
      if (this.#unpublished.has(sessionId)) await removeRemains(target);
      else await requireAbsent(sessionId, target);
      this.#unpublished.add(sessionId);
      const published = await (sessionId === rootId
        ? this.#publishRoot(publication)
        : this.#publishChild(publication));
      this.#unpublished.delete(sessionId);
      return published;
    });
  }

  async open(location: SessionLocation, lease?: TreeLease): Promise<LogFile> {
    try {
      return await LocalLogFile.open(logPath(this.#directoryOf(location)), lease);
    } catch (error) {
      const { sessionId } = location;
      if (hasCode(error, "ENOENT")) {
        throw new CookieError("session_missing", `there is no session ${sessionId} here`);
      }
      throw unopened(sessionId, error);
    }
  }

  heldLease(rootId: SessionId): TreeLease | undefined {
    return this.#leases.get(rootId);
  }

  async children(rootId: SessionId): Promise<SessionId[]> {
    return (await sessionIdsIn(join(this.directory, rootId, CHILDREN))).sort();
  }

  async byteLength(location: SessionLocation): Promise<number> {
    return (await lstat(logPath(this.#directoryOf(location)))).size;
  }

  async writeMetadata(metadata: StoredMetadata): Promise<void> {
    const { origin, session_id: sessionId } = metadata;
    const rootId = origin.type === "root" ? sessionId : origin.root_session_id;
    await this.#withLease(rootId, sessionId, () =>
      replaceMetadataFile(this.#directoryOf({ sessionId, rootId }), metadata),
    );
  }

  async recordCrossReferences(references: readonly CrossReference[]): Promise<void> {
    await this.#initialize();
    await recordCrossReferences(this.directory, references);
  }

  crossReferences(): Promise<CrossReference[]> {
    return readCrossReferences(this.directory);
  }

  remove(rootId: SessionId): Promise<void> {
    return this.#withTree(rootId, async () => {
      const lease = this.#leases.get(rootId);
      if (lease === undefined) throw sessionForeign(rootId);
      const { removeTree, sweepRemoved } = await import("./remove-tree.ts");
      const references = await this.crossReferences();
      const kept = references.filter(({ to_root }) => to_root === rootId);
      await removeTree(this.directory, rootId, new Set(kept.map(({ digest }) => digest)));
      lease.release();
      await sweepRemoved(this.directory);
    });
  }

  async sweep(): Promise<void> {
    const { sweepStore } = await import("./sweep-leftovers.ts");
    await sweepStore(this.directory);
  }

  async close(): Promise<void> {
    for (const lease of this.#leases.values()) lease.release();
  }

  async #readRoot(rootId: SessionId): Promise<StoredMetadata | undefined> {
    const location = { sessionId: rootId, rootId };
    const directory = this.#directoryOf(location);
    const reading = readMetadataFile(directory);
    if (reading.kind === "absent") return undefined;
    if (reading.kind === "read") return requireRoot(rootId, reading.metadata);
    if (this.#options.rebuildMetadata === undefined) {
      throw new Error(`its metadata cannot be read: ${reading.problem}`);
    }
    const metadata = requireRoot(rootId, await this.#options.rebuildMetadata(location));
    if (this.#leases.has(rootId)) await this.writeMetadata(metadata);
    return metadata;
  }

  async #publishRoot(
    publication: SessionPublication,
  ): Promise<{ lease: TreeLease; file: LogFile }> {
    const { rootId } = publication;
    const target = this.#directoryOf(publication);
    const held = this.#leases.get(rootId);
    const merge = await exists(target);
    let taken: TreeLease | undefined = held;
    try {
      const file = await publishSession(publication, {
        target,
        merge,
        lock: async (staged) => {
          const isInside = process.platform !== "win32" && !merge;
          const path = isInside ? stagedLockPath(staged) : treeLockPath(this.directory, rootId);
          taken ??= await this.#take(rootId, path);
          return requireLease(taken, rootId);
        },
      });
      return { lease: requireLease(taken, rootId), file };
    } catch (error) {
      if (held === undefined) taken?.release();
      throw error;
    }
  }

  /** A child takes no lock of its own; before its root is on disk it takes the one of the tree (S-089). */
  async #publishChild(
    publication: SessionPublication,
  ): Promise<{ lease: TreeLease; file: LogFile }> {
    const { rootId } = publication;
    const root = join(this.directory, rootId);
    const held = this.#leases.get(rootId);
    const isNewRoot = !(await exists(root));
    let lease: TreeLease | undefined = held;
    try {
      await makeDirectory(join(root, CHILDREN));
      lease ??= await this.#take(rootId, treeLockPath(this.directory, rootId));
      const taken = requireLease(lease, rootId);
      await syncDirectory(root);
      const target = this.#directoryOf(publication);
      const file = await publishSession(publication, {
        target,
        merge: false,
        lock: async () => taken,
      });
      return { lease: taken, file };
    } catch (error) {
      if (held === undefined) lease?.release();
      if (isNewRoot) await rm(root, { recursive: true, force: true });
      throw error;
    }
  }

  async #take(rootId: SessionId, path: string): Promise<TreeLease | undefined> {
    const known = this.#leases.get(rootId);
    if (known !== undefined) return known;
    let lock: FileLock | undefined;
    try {
      lock = await tryTreeLock(path);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw unopened(rootId, error);
      throw new CookieError("session_missing", `there is no session ${rootId} here`);
    }
    if (lock === undefined) return undefined;
    const lease = new LocalTreeLease(rootId, lock, () => this.#leases.delete(rootId));
    this.#leases.set(rootId, lease);
    return lease;
  }

  /** One after the other with what else is done to the tree here, so that a sweep meets nothing on its way. */
  #withLease(rootId: SessionId, sessionId: SessionId, write: () => Promise<void>): Promise<void> {
    return this.#withTree(rootId, () => {
      if (!this.#leases.has(rootId)) throw sessionForeign(sessionId);
      return write();
    });
  }

  /** Operations on the lock of one tree wait for each other: a second try in this process would fail. */
  async #withTree<T>(rootId: SessionId, operation: () => Promise<T>): Promise<T> {
    const done = await this.#trees.acquire([rootId]);
    try {
      return await operation();
    } finally {
      done();
    }
  }

  #initialize(): Promise<void> {
    this.#initialized ??= initializeStore(this.directory, this.#options.cwd).catch((error) => {
      this.#initialized = undefined;
      throw error;
    });
    return this.#initialized;
  }

  #directoryOf({ sessionId, rootId }: SessionLocation): string {
    const root = join(this.directory, rootId);
    return sessionId === rootId ? root : join(root, CHILDREN, sessionId);
  }
}

async function requireAbsent(sessionId: SessionId, target: string): Promise<void> {
  if (!(await exists(logPath(target)))) return;
  throw new CookieError("engine", `session ${sessionId} is already published`);
}

function requireRoot(rootId: SessionId, metadata: StoredMetadata): StoredMetadata {
  if (metadata.session_id === rootId && metadata.origin.type === "root") return metadata;
  throw new Error("its metadata belongs to another session");
}

function requireLease(lease: TreeLease | undefined, rootId: SessionId): TreeLease {
  if (lease !== undefined) return lease;
  throw sessionForeign(rootId);
}

/** The session directories inside a directory; other files, links and dot names do not count (S-076). */
async function sessionIdsIn(directory: string): Promise<SessionId[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
  return entries.flatMap((entry) => {
    const parsed = SessionId.safeParse(entry.name);
    return entry.isDirectory() && parsed.success ? [parsed.data] : [];
  });
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/** A link in the place of a session's directory is no session, wherever it leads (S-076). */
async function holdsLog(directory: string): Promise<boolean> {
  return (await exists(logPath(directory))) && (await lstat(directory)).isDirectory();
}

function unopened(sessionId: SessionId, cause: unknown): CookieError {
  return new CookieError(
    "storage_failed",
    `the log of session ${sessionId} cannot be opened (${problemOf(cause)}); make it a file that you can read and write`,
    { cause, data: { session_id: sessionId } },
  );
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
