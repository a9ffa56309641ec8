import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { syncDirectory } from "./durable-replace.ts";
import { hasCode } from "./has-code.ts";

/**
 * Makes a directory and what is missing above it, for the owner alone (0700). Rejects with the system's error for the
 * level that cannot be made. Node's recursive mkdir never ends where such a level's parent exists, as in /proc.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await makeLevel(path);
  } catch (error) {
    const parent = dirname(path);
    if (!hasCode(error, "ENOENT") || parent === path) throw error;
    await makeDirectory(parent);
    await makeLevel(path);
  }
}

/** The same, so that each level that was missing survives a loss of power before one below it is made. */
export async function makeDurableDirectory(path: string): Promise<void> {
  const parent = dirname(path);
  if (parent !== path && !(await isDirectory(parent))) await makeDurableDirectory(parent);
  if (await isDirectory(path)) return;
  await makeDirectory(path);
  await syncDirectory(parent);
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

async function makeLevel(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, "EEXIST") || !(await stat(path)).isDirectory()) throw error;
  }
}
