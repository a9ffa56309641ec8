import { closeSync, openSync } from "node:fs";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { sleep } from "./deadline.ts";
import { loadTryLock } from "./lock-binding.ts";

/** An exclusive lock between processes that the operating system releases when its holder dies (C-002). */
export interface FileLock {
  readonly path: string;
  /** Safe to call twice. */
  release(): void;
}

const WAIT_MS = 10_000;

/** Takes the lock file at `path`, made when absent and never removed; undefined when someone else holds it. */
export async function tryFileLock(path: string): Promise<FileLock | undefined> {
  const tryLock = await loadTryLock();
  const fd = openSync(path, "a+", 0o600);
  let held = false;
  try {
    held = tryLock(fd);
  } finally {
    if (!held) closeSync(fd);
  }
  if (!held) return undefined;
  return {
    path,
    release() {
      if (!held) return;
      held = false;
      closeSync(fd);
    },
  };
}

/** Locks an open, writable file itself, until its descriptor is closed; false when someone else holds it. */
export async function tryLockDescriptor(fd: number): Promise<boolean> {
  const tryLock = await loadTryLock();
  return tryLock(fd);
}

/** Does `work` under the lock; rejects with `busy` when the holder does not let go in ten seconds. */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + WAIT_MS;
  let delayMs = 2;
  let lock = await tryFileLock(path);
  while (lock === undefined) {
    if (performance.now() >= deadlineMs) {
      throw new CookieError("busy", `${path} is locked by another process; try again`);
    }
    await sleep(delayMs);
    delayMs = Math.min(delayMs * 2, 50);
    lock = await tryFileLock(path);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}
