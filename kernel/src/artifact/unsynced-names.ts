import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "../support/has-code.ts";
import { syncNames } from "../support/sync-data.ts";

/**
 * Directories with names that a loss of power would take back. A sync of one serves everything that was put there
 * before it, so many artifacts cost what one does.
 */
export class UnsyncedNames {
  readonly #unsynced = new Set<string>();
  readonly #known = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();

  /** Something was put into a directory, which itself may be new. */
  add(directory: string): void {
    this.#unsynced.add(directory);
    if (this.#known.has(directory)) return;
    this.#known.add(directory);
    this.#unsynced.add(dirname(directory));
  }

  /** Resolves when all names that were added there are durable; what fails is tried again by the next call. */
  async sync(directory: string): Promise<void> {
    if (this.#unsynced.size === 0 && this.#running.size === 0) return;
    await Promise.all([this.#sync(directory), this.#sync(dirname(directory))]);
  }

  async #sync(directory: string): Promise<void> {
    for (;;) {
      const running = this.#running.get(directory);
      if (running === undefined) break;
      // It may have begun before the last name was there.
      await running.catch(() => undefined);
    }
    if (!this.#unsynced.delete(directory)) return;
    const sync = syncDirectory(directory).catch((error: unknown) => {
      this.#unsynced.add(directory);
      throw error;
    });
    this.#running.set(directory, sync);
    try {
      await sync;
    } finally {
      this.#running.delete(directory);
    }
  }
}

async function syncDirectory(directory: string): Promise<void> {
  // Windows cannot open a directory; its rename is journaled by the file system.
  if (process.platform === "win32") return;
  let fd: number;
  try {
    fd = openSync(directory, "r");
  } catch (error) {
    // With the directory all names are gone, which whoever needs them finds out.
    if (hasCode(error, "ENOENT", "ENOTDIR")) return;
    throw error;
  }
  try {
    await syncNames(fd);
  } finally {
    closeSync(fd);
  }
}
