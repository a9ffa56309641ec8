import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SessionId } from "@cookie-agent/sdk/protocol";
import { sweepRemoved } from "./remove-tree.ts";
import { stagedLockPath, treeLockPath, tryTreeLock } from "./tree-lock.ts";

const STAGED_SESSION = /^\.([0-9a-f-]{36})\.[0-9a-f-]{36}\.tmp$/;
const STAGED_CACHE = /^\.(?:metadata|index\.json)\.[0-9a-f]+\.tmp$/;
/** Between making its directory and locking it a writer cannot be told from a dead one. */
const STAGING_AGE_MS = 60 * 60 * 1000;

/**
 * Removes what writers that died have left below a root: publications of children and caches on their way. To be called
 * by whoever has just taken the lock of the tree, before anything of it is written. What cannot go now stays.
 */
export function sweepTree(rootDirectory: string, childrenDirectory: string): void {
  const folders = directoriesIn(childrenDirectory);
  for (const directory of [rootDirectory, childrenDirectory]) removeStaged(directory);
  for (const name of folders) {
    if (SessionId.safeParse(name).success) removeStaged(join(childrenDirectory, name));
  }
}

/** Removes publications of roots whose writer is gone, and what removals that were cut off have left. */
export async function sweepStore(storeDirectory: string): Promise<void> {
  await sweepRemoved(storeDirectory);
  for (const name of directoriesIn(storeDirectory)) {
    const [, rootId] = STAGED_SESSION.exec(name) ?? [];
    const parsed = SessionId.safeParse(rootId);
    if (!parsed.success) continue;
    const staged = join(storeDirectory, name);
    try {
      if (lstatSync(staged).mtimeMs > Date.now() - STAGING_AGE_MS) continue;
      const locks = [stagedLockPath(staged), treeLockPath(storeDirectory, parsed.data)];
      if (await anyHeld(locks)) continue;
      rmSync(staged, { recursive: true, force: true });
    } catch {
      // It is not ours to remove, or another process was faster.
    }
  }
}

async function anyHeld(locks: readonly string[]): Promise<boolean> {
  for (const path of locks) {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) continue;
    const lock = await tryTreeLock(path);
    if (lock === undefined) return true;
    lock.release();
  }
  return false;
}

function removeStaged(directory: string): void {
  for (const name of namesIn(directory)) {
    if (!STAGED_SESSION.test(name) && !STAGED_CACHE.test(name)) continue;
    try {
      rmSync(join(directory, name), { recursive: true, force: true });
    } catch {
      // The next one to take the lock tries again.
    }
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Links lead elsewhere and do not count. */
function directoriesIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
