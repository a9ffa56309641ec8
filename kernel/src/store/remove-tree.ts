import { randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { CookieError, type Digest, type SessionId } from "@cookie-agent/sdk/protocol";
import { syncDirectory } from "../support/durable-replace.ts";
import { hasCode } from "../support/has-code.ts";

const REMOVED = /^\.removed-.+\.tmp$/;

/**
 * Removes a root with everything below it: it is renamed away in one durable step, then deleted, so that a crash in
 * between leaves nothing that looks like a session. Links are removed, never followed.
 * @param kept Artifacts that other trees refer to; they move to the shared ones.
 */
export async function removeTree(
  storeDirectory: string,
  rootId: SessionId,
  kept: ReadonlySet<Digest>,
): Promise<void> {
  const root = join(storeDirectory, rootId);
  const removed = join(storeDirectory, `.removed-${rootId}.${randomBytes(8).toString("hex")}.tmp`);
  try {
    if (!(await lstat(root)).isDirectory()) throw new Error("it is no directory");
    await moveToShared(storeDirectory, join(root, "artifacts"), kept);
    await rename(root, removed);
    await syncDirectory(storeDirectory);
  } catch (error) {
    throw unremovable(rootId, "nothing was removed", error);
  }
  try {
    await rm(removed, { recursive: true, force: true });
  } catch (error) {
    throw unremovable(rootId, `it is no session any more, but files remain in ${removed}`, error);
  }
}

/** Deletes what a removal that was cut off has left behind; what cannot go now is tried again at the next. */
export async function sweepRemoved(storeDirectory: string): Promise<void> {
  const names = await readdir(storeDirectory).catch(() => []);
  for (const name of names) {
    if (!REMOVED.test(name)) continue;
    // Another process may be at it.
    await rm(join(storeDirectory, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

async function moveToShared(
  storeDirectory: string,
  artifacts: string,
  kept: ReadonlySet<Digest>,
): Promise<void> {
  if (kept.size === 0) return;
  const shared = join(storeDirectory, "artifacts.shared");
  await mkdir(shared, { mode: 0o700 }).catch((error: unknown) => {
    if (!hasCode(error, "EEXIST")) throw error;
  });
  for (const digest of kept) {
    await rename(join(artifacts, digest), join(shared, digest)).catch((error: unknown) => {
      if (!hasCode(error, "ENOENT", "ENOTDIR")) throw error;
    });
  }
  await syncDirectory(shared);
}

function unremovable(rootId: SessionId, outcome: string, cause: unknown): CookieError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new CookieError(
    "storage_failed",
    `session ${rootId} cannot be removed (${reason}): ${outcome}; make its files yours to delete`,
    { cause, data: { session_id: rootId } },
  );
}
