import type { BigIntStats } from "node:fs";
import { closeSync } from "node:fs";
import { type FileHandle, link, lstat, mkdir, open, rename, rm, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { diskError, errnoOf } from "./disk-error.ts";
import { type HeldFolder, holdFolder } from "./held-folder.ts";
import type { LocatedTarget } from "./locate-target.ts";
import {
  createStage,
  createStageFolder,
  freeStagePath,
  syncFolder,
  writeAll,
} from "./stage-file.ts";
import {
  digestFile,
  openTarget,
  revalidateTarget,
  sameFile,
  targetChanged,
} from "./target-identity.ts";

/** A file as prepared for replacement: where it is and what it held; `sha256` is null for an absent one. */
export interface PreparedFile {
  readonly target: LocatedTarget;
  readonly sha256: string | null;
}

export interface Publication {
  /** Names what could not be cleaned up after the new content stood; null normally. */
  readonly cleanupWarning: string | null;
}

/** Path whose state is unknown after a failed publication; no further write is safe in this process. */
let unsettledPath: string | undefined;

/**
 * Puts content in place of a prepared target, whole or not at all (T-062).
 *
 * A target that is not as prepared is `operation_changed` and stays as it is. Nothing but the target is left
 * behind, whichever way this ends. Cancellation counts until the content is published. Everything happens in the
 * folder that was prepared, held open, so that a link in its place leads nothing astray.
 *
 * @param parts The new content, in order.
 */
export async function publishFile(
  prepared: PreparedFile,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<Publication> {
  if (unsettledPath !== undefined) {
    throw new ToolError(
      "operation_changed",
      `an earlier write left ${unsettledPath} in an unknown state; check it and restart before writing again`,
    );
  }
  const { target } = prepared;
  const folder = holdFolder(target.folder.path, target.folder);
  if (folder === undefined) throw targetChanged(target.path);
  try {
    if (target.leaf !== null)
      return await replaceFile(prepared, target.leaf, folder, parts, signal);
    return target.missing.length === 1
      ? await createFile(target, folder, parts, signal)
      : await createTree(target, folder, parts, signal);
  } catch (error) {
    throw diskError(`cannot write ${target.path}`, error);
  } finally {
    folder.close();
  }
}

async function replaceFile(
  prepared: PreparedFile,
  leaf: BigIntStats,
  folder: HeldFolder,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<Publication> {
  const { target } = prepared;
  const place = placeOf(target, folder);
  const stage = await createStage(folder, 0o600);
  try {
    try {
      await writeAll(stage.handle, parts, signal);
      await takeOver(stage.handle, leaf);
      await stage.handle.sync();
    } finally {
      await stage.handle.close();
    }
    const aside = await setAside(prepared, folder);
    try {
      checkSignal(signal, target.path);
      await commit(target, { stage: stage.path, place }, () => rename(stage.path, place));
    } catch (error) {
      if (aside !== undefined) await unlink(aside).catch(() => undefined);
      throw error;
    }
    return settle(folder, aside);
  } catch (error) {
    await rm(stage.path, { force: true });
    throw error;
  }
}

/** The new file gets the owner and permission bits of the old one; without the owner no set-id bit survives. */
async function takeOver(handle: FileHandle, leaf: BigIntStats): Promise<void> {
  let mode = Number(leaf.mode & 0o7777n);
  const own = await handle.stat({ bigint: true });
  if (own.uid !== leaf.uid || own.gid !== leaf.gid) {
    try {
      await handle.chown(Number(leaf.uid), Number(leaf.gid));
    } catch {
      mode &= 0o1777;
    }
  }
  await handle.chmod(mode);
}

/**
 * Pins the object about to be replaced with a second name and checks that it is the prepared one, bytes included.
 * Undefined where the filesystem has no hard links; then the object is checked under its own name.
 */
async function setAside(prepared: PreparedFile, folder: HeldFolder): Promise<string | undefined> {
  const { target, sha256 } = prepared;
  revalidateTarget(target, sameFile);
  const place = placeOf(target, folder);
  const aside = await freeStagePath(folder, (path) => link(place, path)).catch((error: unknown) => {
    if (linksUnsupported(error)) return undefined;
    if (errnoOf(error) === "ENOENT") throw targetChanged(target.path);
    throw error;
  });
  try {
    const pinned = join(folder.path, basename(aside ?? place));
    const fd = openTarget({ ...target, canonical: pinned }, sameFile, aside ?? place);
    try {
      if ((await digestFile(fd, target.path)) !== sha256) throw targetChanged(target.path);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (aside !== undefined) await unlink(aside).catch(() => undefined);
    throw error;
  }
  return aside;
}

async function createFile(
  target: LocatedTarget,
  folder: HeldFolder,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<Publication> {
  const place = placeOf(target, folder);
  const stage = await createStage(folder, 0o666);
  try {
    await writeAndClose(stage.handle, parts, signal);
    checkSignal(signal, target.path);
    revalidateTarget(target, sameFile);
    try {
      await commit(target, { stage: stage.path, place }, () => link(stage.path, place));
    } catch (error) {
      if (!linksUnsupported(error)) throw error;
      await createDirectly(target, place, parts, signal);
    }
  } catch (error) {
    await rm(stage.path, { force: true });
    throw error;
  }
  return settle(folder, stage.path);
}

/** Without hard links the name itself is created exclusively, and removed again when the content fails. */
async function createDirectly(
  target: LocatedTarget,
  place: string,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(place, "wx", 0o666).catch((error: unknown) => {
    throw errnoOf(error) === "EEXIST" ? targetChanged(target.path) : error;
  });
  try {
    await writeAndClose(handle, parts, signal);
  } catch (error) {
    await rm(place, { force: true });
    throw error;
  }
}

/** Builds the missing folders and the file aside, then gives the outermost one its name. */
async function createTree(
  target: LocatedTarget,
  folder: HeldFolder,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<Publication> {
  const place = placeOf(target, folder);
  const inner = target.missing.slice(1);
  const stage = await createStageFolder(folder);
  try {
    const chain = [stage];
    for (const name of inner.slice(0, -1)) {
      const next = join(chain.at(-1) ?? stage, name);
      await mkdir(next);
      chain.push(next);
    }
    const handle = await open(join(chain.at(-1) ?? stage, inner.at(-1) ?? ""), "wx", 0o666);
    await writeAndClose(handle, parts, signal);
    for (const path of chain.reverse()) await syncFolder(path);
    checkSignal(signal, target.path);
    revalidateTarget(target, sameFile);
    await commit(target, { stage, place }, () => rename(stage, place));
  } catch (error) {
    await rm(stage, { recursive: true, force: true });
    throw error;
  }
  return settle(folder, undefined);
}

async function writeAndClose(
  handle: FileHandle,
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<void> {
  try {
    await writeAll(handle, parts, signal);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const OCCUPIED = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR"]);

/** The one step that makes the content visible. When it fails, finds out whether it happened all the same. */
async function commit(
  target: LocatedTarget,
  { stage, place }: { readonly stage: string; readonly place: string },
  step: () => Promise<void>,
): Promise<void> {
  const staged = await lstat(stage, { bigint: true });
  try {
    await step();
  } catch (error) {
    if (OCCUPIED.has(errnoOf(error) ?? "")) throw targetChanged(target.path);
    const found = await lstat(place, { bigint: true }).catch((reason: unknown) =>
      errnoOf(reason) === "ENOENT" ? null : undefined,
    );
    if (found === undefined) {
      unsettledPath = target.path;
      throw error;
    }
    const published = found !== null && found.dev === staged.dev && found.ino === staged.ino;
    if (!published) throw error;
  }
}

/** The name that publication gives: the target itself, or its outermost missing folder. */
function placeOf(target: LocatedTarget, folder: HeldFolder): string {
  return folder.at(target.missing[0] ?? basename(target.canonical));
}

/** After publication: what fails now is told, not undone. */
async function settle(folder: HeldFolder, leftover: string | undefined): Promise<Publication> {
  const warnings: string[] = [];
  await syncFolder(folder.at("")).catch(() => {
    warnings.push(`the folder ${folder.path} could not be synced to disk`);
  });
  if (leftover !== undefined) {
    await unlink(leftover).catch(() => {
      warnings.push(
        `the temporary file ${join(folder.path, basename(leftover))} could not be removed`,
      );
    });
  }
  return { cleanupWarning: warnings.length === 0 ? null : warnings.join("; ") };
}

function linksUnsupported(error: unknown): boolean {
  return ["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EXDEV"].includes(
    errnoOf(error) ?? "",
  );
}

function checkSignal(signal: AbortSignal, path: string): void {
  if (signal.aborted) throw new ToolError("cancelled", `writing ${path} was cancelled`);
}
