import { fdatasync, fdatasyncSync, fsync, fsyncSync } from "node:fs";
import { promisify } from "node:util";

/** A sync that takes longer would keep every other session waiting. */
const FAST_MS = 1;
/** After a slow sync this many go to another thread before the disk is tried again. */
const SYNCS_APART = 64;

const dataElsewhere = promisify(fdatasync);
const namesElsewhere = promisify(fsync);
let syncsApart = 0;

/**
 * Makes little data durable. On a fast disk the sync runs on this thread, because handing it to another takes longer
 * than the sync itself; a disk that was slow once is left to other threads for a while.
 */
export function syncData(fd: number): Promise<void> {
  return sync(fd, fdatasyncSync, dataElsewhere);
}

/** The same for the names in a directory, which count as no data of it. */
export function syncNames(fd: number): Promise<void> {
  return sync(fd, fsyncSync, namesElsewhere);
}

async function sync(
  fd: number,
  here: (fd: number) => void,
  elsewhere: (fd: number) => Promise<void>,
): Promise<void> {
  if (syncsApart > 0) {
    syncsApart -= 1;
    return elsewhere(fd);
  }
  const startedMs = performance.now();
  here(fd);
  if (performance.now() - startedMs > FAST_MS) syncsApart = SYNCS_APART;
}
