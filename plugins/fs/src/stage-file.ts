import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { errnoOf } from "./disk-error.ts";
import type { HeldFolder } from "./held-folder.ts";

const PIECE_BYTES = 1024 * 1024;
const MAX_ATTEMPTS = 1000;

let lastNumber = 0;

/** Creates an empty file with a name of its own beside a target. The caller closes the handle. */
export async function createStage(
  folder: HeldFolder,
  mode: number,
): Promise<{ path: string; handle: FileHandle }> {
  let handle: FileHandle | undefined;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const path = await freeStagePath(folder, async (candidate) => {
    handle = await open(candidate, flags, mode);
  });
  if (handle === undefined) throw new ToolError("internal", "the stage file was not opened");
  return { path, handle };
}

/** Creates an empty folder with a name of its own, under the ordinary umask mode. */
export function createStageFolder(folder: HeldFolder): Promise<string> {
  return freeStagePath(folder, (path) => mkdir(path));
}

/** Takes a stage name that nobody has: `take` must fail with `EEXIST` when somebody does. */
export async function freeStagePath(
  folder: HeldFolder,
  take: (path: string) => Promise<unknown>,
): Promise<string> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    lastNumber += 1;
    const path = folder.at(`.cookie-agent-stage-${process.pid}-${lastNumber}`);
    try {
      await take(path);
      return path;
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
  }
  throw new ToolError("execution_failed", `${folder.path} is full of old stage files; remove them`);
}

export async function writeAll(
  handle: FileHandle,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<void> {
  for (const part of parts) {
    let written = 0;
    while (written < part.length) {
      if (signal.aborted) throw new ToolError("cancelled", "the write was cancelled");
      const length = Math.min(PIECE_BYTES, part.length - written);
      written += (await handle.write(part, written, length)).bytesWritten;
    }
  }
}

export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
