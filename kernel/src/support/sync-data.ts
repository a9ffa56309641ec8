import { fdatasync, fdatasyncSync } from "node:fs";
import { promisify } from "node:util";

/** A sync that takes longer would keep every other session waiting. */
const FAST_MS = 1;
/** After a slow sync this many go to another thread before the disk is tried again. */
const SYNCS_APART = 64;

const syncElsewhere = promisify(fdatasync);
let syncsApart = 0;

/**
 * Makes little data durable. On a fast disk the sync runs on this thread, because handing it to another takes longer
 * than the sync itself; a disk that was slow once is left to other threads for a while.
 */
export async function syncData(fd: number): Promise<void> {
  if (syncsApart > 0) {
    syncsApart -= 1;
    return syncElsewhere(fd);
  }
  const startedMs = performance.now();
  fdatasyncSync(fd);
  if (performance.now() - startedMs > FAST_MS) syncsApart = SYNCS_APART;
}
