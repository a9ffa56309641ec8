import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { CookieError, MAX_SCRATCH_IMPORT_BYTES, type SessionId } from "@cookie-agent/sdk/protocol";
import { hasCode } from "../support/has-code.ts";
import type { ArtifactStore, StoredArtifact } from "./artifact-store.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * Stores a file of a plugin's scratch directory (E-110): a regular one, directly inside, under no second name, reached
 * through no link, of at most 64 MiB. Rejects with `execution_failed`, `unsupported_security` or `resource_limit`.
 *
 * @param name Without separators.
 */
export async function importScratch(
  store: ArtifactStore,
  rootId: SessionId,
  directory: string,
  name: string,
): Promise<StoredArtifact> {
  const file = await openScratch(directory, name);
  try {
    const capture = await store.beginCapture(rootId);
    try {
      for (;;) {
        const { buffer, bytesRead } = await file.read(
          Buffer.allocUnsafe(CHUNK_BYTES),
          0,
          CHUNK_BYTES,
          capture.byteLength,
        );
        if (bytesRead === 0) break;
        // It may grow while it is read.
        if (capture.byteLength + bytesRead > MAX_SCRATCH_IMPORT_BYTES) throw tooLarge(name);
        await capture.append(buffer.subarray(0, bytesRead));
      }
      const stored = capture.seal();
      await capture.publish();
      return stored;
    } finally {
      capture.discard();
    }
  } finally {
    await file.close();
  }
}

/** The first bytes of such a file and its length, for a look at it that stores nothing. */
export async function readScratchHead(
  directory: string,
  name: string,
  length: number,
): Promise<{ readonly head: Uint8Array; readonly byteLength: number }> {
  const file = await openScratch(directory, name);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
    return { head: buffer.subarray(0, bytesRead), byteLength: (await file.stat()).size };
  } finally {
    await file.close();
  }
}

async function openScratch(directory: string, name: string): Promise<FileHandle> {
  let file: FileHandle;
  try {
    if (!(await lstat(directory)).isDirectory()) throw refused(name, "its directory is a link");
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    file = await open(join(directory, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ELOOP")) throw refused(name, "it is a link");
    if (error instanceof CookieError) throw error;
    throw new CookieError("execution_failed", `the scratch file ${name} cannot be opened`, {
      cause: error,
    });
  }
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw refused(name, "it is not a regular file");
    if (stat.nlink !== 1) throw refused(name, "it has a second name");
    if (stat.size > MAX_SCRATCH_IMPORT_BYTES) throw tooLarge(name);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function refused(name: string, why: string): CookieError {
  return new CookieError("unsupported_security", `the scratch file ${name} is not taken: ${why}`);
}

function tooLarge(name: string): CookieError {
  return new CookieError(
    "resource_limit",
    `the scratch file ${name} is larger than ${MAX_SCRATCH_IMPORT_BYTES} bytes`,
    { data: { limit: MAX_SCRATCH_IMPORT_BYTES } },
  );
}
