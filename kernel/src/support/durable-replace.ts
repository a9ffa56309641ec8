import { randomBytes } from "node:crypto";
import { open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const TEMPORARY = /^\d+-[0-9a-f]{12}\.tmp$/;

/**
 * Replaces a file so that after a crash it holds either the old or the new bytes (C-001):
 * exclusive sibling temporary, write, fsync, rename, fsync of the directory. On failure nothing remains.
 * The caller holds the lock of the file, so other temporaries of it are those of dead writers and go.
 * @param options.confirm Called just before the rename; what it rejects with keeps the old file.
 */
export async function durableReplace(
  path: string,
  bytes: Uint8Array,
  options: { mode?: number; confirm?: () => Promise<void> } = {},
): Promise<void> {
  await removeTemporaries(path);
  const temporary = `${path}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", options.mode ?? 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await options.confirm?.();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

async function removeTemporaries(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  for (const name of await readdir(dirname(path)).catch(() => [])) {
    if (!name.startsWith(prefix) || !TEMPORARY.test(name.slice(prefix.length))) continue;
    await rm(join(dirname(path), name), { force: true }).catch(() => undefined);
  }
}

/** Makes names created, renamed or removed in `directory` survive a loss of power. */
export async function syncDirectory(directory: string): Promise<void> {
  // Windows cannot open a directory; its rename is journaled by the file system.
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
