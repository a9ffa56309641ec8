import { createHash } from "node:crypto";
import { type BigIntStats, closeSync, constants, fstatSync, openSync } from "node:fs";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { diskError, errnoOf } from "./disk-error.ts";
import { isAt } from "./held-folder.ts";
import { type LocatedTarget, locateTarget } from "./locate-target.ts";
import { readChunks } from "./read-chunks.ts";

const MAX_KEY_BYTES = 512;

/** Fails unless the target is a regular file or a folder (T-051); decided before anything is opened. */
export function checkObjectType(path: string, leaf: BigIntStats): "file" | "directory" {
  if (leaf.isFile()) return "file";
  if (leaf.isDirectory()) return "directory";
  throw new ToolError(
    "unsupported_security",
    `${path} is not a regular file: it is a ${specialName(leaf)}`,
  );
}

/** Fails unless the target is a regular file. */
export function requireFile(path: string, leaf: BigIntStats): void {
  if (checkObjectType(path, leaf) === "file") return;
  throw new ToolError("unsupported_security", `${path} is a directory, not a file`);
}

function specialName(leaf: BigIntStats): string {
  if (leaf.isFIFO()) return "named pipe";
  if (leaf.isSocket()) return "socket";
  if (leaf.isCharacterDevice()) return "character device";
  if (leaf.isBlockDevice()) return "block device";
  return "special file";
}

/** Looks at a prepared target again; `operation_changed` when the way to it or the object differs (T-053). */
export function revalidateTarget(
  prepared: LocatedTarget,
  same: (before: BigIntStats, now: BigIntStats) => boolean,
): LocatedTarget {
  const now = relocate(prepared.path);
  const unchanged =
    now !== undefined &&
    now.trail === prepared.trail &&
    now.canonical === prepared.canonical &&
    (now.leaf === null || prepared.leaf === null
      ? now.leaf === prepared.leaf && now.missing.length === prepared.missing.length
      : same(prepared.leaf, now.leaf));
  if (!unchanged) throw targetChanged(prepared.path);
  return now;
}

export function targetChanged(path: string): ToolError {
  return new ToolError(
    "operation_changed",
    `${path} changed since this call was prepared; nothing was done. Look at it again and repeat the call`,
  );
}

function relocate(path: string): LocatedTarget | undefined {
  try {
    return locateTarget(path);
  } catch {
    return undefined;
  }
}

/** Same object with the same times: what a read holds on to. */
export function sameSnapshot(before: BigIntStats, now: BigIntStats): boolean {
  return (
    sameObject(before, now) &&
    before.size === now.size &&
    before.mtimeNs === now.mtimeNs &&
    before.ctimeNs === now.ctimeNs
  );
}

/** Same object, mode and size: what a write and an edit hold on to, beside the digest of the content. */
export function sameFile(before: BigIntStats, now: BigIntStats): boolean {
  return sameObject(before, now) && before.mode === now.mode && before.size === now.size;
}

function sameObject(before: BigIntStats, now: BigIntStats): boolean {
  return before.dev === now.dev && before.ino === now.ino;
}

/**
 * Opens a located file without following a link or waiting for a writer, and checks that the handle is that file and
 * that the file is where it was located, not behind a link that came later. The caller closes the descriptor.
 *
 * @param access Another way to the same place.
 */
export function openTarget(
  target: LocatedTarget,
  same: (before: BigIntStats, now: BigIntStats) => boolean,
  access = target.canonical,
): number {
  let fd: number;
  try {
    fd = openSync(access, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO") throw targetChanged(target.path);
    throw diskError(`cannot open ${target.path}`, error);
  }
  const opened = fstatSync(fd, { bigint: true });
  const isSame = target.leaf !== null && opened.isFile() && same(target.leaf, opened);
  if (!isSame || !isAt(fd, target.canonical)) {
    closeSync(fd);
    throw targetChanged(target.path);
  }
  return fd;
}

/** SHA-256 of everything behind a descriptor, in hex; each chunk also goes to `onChunk`. */
export async function digestFile(
  fd: number,
  path: string,
  signal?: AbortSignal,
  onChunk?: (chunk: Buffer) => void,
): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of readChunks(fd, path, signal)) {
    hash.update(chunk);
    onChunk?.(chunk);
  }
  return hash.digest("hex");
}

/**
 * The key that keeps mutations of one target apart (T-027): device and inode of an existing file, so that hard
 * links share it, else those of the nearest existing folder with every missing name.
 */
export function serializationKey(target: LocatedTarget): string {
  if (target.leaf !== null) return `file:${target.leaf.dev}:${target.leaf.ino}`;
  const prefix = `path:${target.folder.dev}:${target.folder.ino}/`;
  const key = prefix + target.missing.join("/");
  if (Buffer.byteLength(key) <= MAX_KEY_BYTES) return key;
  return prefix + createHash("sha256").update(key).digest("hex");
}
