import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createId } from "../support/create-id.ts";
import { syncDirectory } from "../support/durable-replace.ts";
import { LocalLogFile } from "./local-log-file.ts";
import { encodeMetadata, logPath, metadataPath } from "./metadata-file.ts";
import type { SessionPublication, TreeLease } from "./session-store.ts";

export interface PublicationSteps {
  /** Where the session's directory goes. */
  readonly target: string;
  /** The directory exists already: children were published before their root (S 1.4). */
  readonly merge: boolean;
  /** The lease of the tree, taken now if it is not held yet: what lies in `staged` is known to have a living writer. */
  lock(staged: string): Promise<TreeLease>;
}

/**
 * Prepares the session beside its place, moves it there in one step and opens its log. When it rejects, nothing of
 * the session remains (S-026), unless the disk refuses to remove it; a lock that was taken is the caller's to release.
 */
export async function publishSession(
  publication: SessionPublication,
  { target, merge, lock }: PublicationSteps,
): Promise<LocalLogFile> {
  const parent = dirname(target);
  const staged = join(parent, `.${publication.sessionId}.${createId()}.tmp`);
  let moved = false;
  try {
    await mkdir(staged, { mode: 0o700 });
    const lease = await lock(staged);
    await writeLog(logPath(staged), publication.bytes);
    await writeFile(metadataPath(staged), encodeMetadata(publication.metadata), { mode: 0o600 });
    await syncDirectory(staged);
    if (merge) {
      await moveInto(staged, target);
    } else {
      await rename(staged, target);
      moved = true;
    }
    await syncDirectory(parent);
    return await LocalLogFile.open(logPath(target), lease);
  } catch (error) {
    // A disk that fails here as well must not hide why; `removeRemains` tries again.
    await rm(moved ? target : staged, { recursive: true, force: true }).catch(() => undefined);
    throw error;
  }
}

/** Takes away what a failed publication could not; a directory in the place of the session may stay. */
export async function removeRemains(target: string): Promise<void> {
  await rm(metadataPath(target), { force: true });
  await rm(logPath(target), { force: true });
}

/** `metadata` comes last: until then discovery takes the root for one that is not there. */
async function moveInto(staged: string, target: string): Promise<void> {
  await rename(logPath(staged), logPath(target));
  try {
    await rename(metadataPath(staged), metadataPath(target));
  } catch (error) {
    await rm(logPath(target), { force: true });
    throw error;
  }
  await syncDirectory(target);
  await rm(staged, { recursive: true });
}

async function writeLog(path: string, bytes: SessionPublication["bytes"]): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await writeFile(file, bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
