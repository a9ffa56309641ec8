import { chmod, lstat } from "node:fs/promises";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { type FileLock, tryFileLock } from "../support/file-lock.ts";
import { hasCode } from "../support/has-code.ts";
import type { TreeLease } from "./session-store.ts";

const LOCK_FILE = "owner.lock";

/** Where the lock of a tree lies: inside the root, or beside it where an open file blocks a rename (S 3.6). */
export function treeLockPath(
  storeDirectory: string,
  rootId: SessionId,
  platform: NodeJS.Platform = process.platform,
): string {
  return platform === "win32"
    ? join(storeDirectory, `${rootId}.${LOCK_FILE}`)
    : join(storeDirectory, rootId, LOCK_FILE);
}

/** The lock file's name inside a directory that will become the root by a rename. */
export function stagedLockPath(stagedRoot: string): string {
  return join(stagedRoot, LOCK_FILE);
}

/** One try; undefined when another process holds the tree, or when that cannot be told (S 3.6). */
export async function tryTreeLock(path: string): Promise<FileLock | undefined> {
  if (!(await isOurs(path))) return undefined;
  try {
    const lock = await tryFileLock(path);
    if (lock !== undefined && process.platform !== "win32") await chmod(path, 0o600);
    return lock;
  } catch (error) {
    if (hasCode(error, "EACCES", "EPERM", "EBADF", "EISDIR", "ELOOP")) return undefined;
    throw error;
  }
}

/** A lock file of another user fails closed; so does one that is not a plain file. */
async function isOurs(path: string): Promise<boolean> {
  try {
    const stats = await lstat(path);
    return stats.isFile() && (process.getuid === undefined || stats.uid === process.getuid());
  } catch (error) {
    return hasCode(error, "ENOENT");
  }
}

/** A held tree; `onRelease` runs once, before another process can take it. */
export class LocalTreeLease implements TreeLease {
  readonly rootId: SessionId;
  readonly #lock: FileLock;
  readonly #onRelease: () => void;
  #held = true;

  constructor(rootId: SessionId, lock: FileLock, onRelease: () => void) {
    this.rootId = rootId;
    this.#lock = lock;
    this.#onRelease = onRelease;
  }

  get held(): boolean {
    return this.#held;
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#onRelease();
    this.#lock.release();
  }
}
