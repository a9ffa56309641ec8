import { type BigIntStats, closeSync, constants, fstatSync, openSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { diskError, errnoOf } from "./disk-error.ts";

/** A name for the folder alone, which needs no right to list it; Linux only, and missing in Node's constants. */
const O_PATH = process.platform === "linux" ? 0o10000000 : 0;

/** An open folder, reached whatever becomes of the path that led to it. */
export interface HeldFolder {
  /** Where the folder is, for people. */
  readonly path: string;
  /** Leads to a name in the folder, even when a link has taken the place of the folder. */
  at(name: string): string;
  close(): void;
}

/**
 * Opens a folder and checks that it is the expected one, where it is expected; undefined when it is not. Without
 * procfs the folder is reached by its path.
 */
export function holdFolder(
  path: string,
  expected: Pick<BigIntStats, "dev" | "ino">,
): HeldFolder | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    if (["ENOENT", "ELOOP", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw diskError(`cannot open ${path}`, error);
  }
  const { dev, ino } = fstatSync(fd, { bigint: true });
  const place = placeOf(fd);
  if (dev !== expected.dev || ino !== expected.ino || !isPlace(place, path)) {
    closeSync(fd);
    return undefined;
  }
  const base = place === undefined ? path : procName(fd);
  return { path, at: (name) => join(base, name), close: () => closeSync(fd) };
}

/** True when what a descriptor stands for is found at the path now; true as well where that cannot be known. */
export function isAt(fd: number, path: string): boolean {
  return isPlace(placeOf(fd), path);
}

function isPlace(place: string | undefined, path: string): boolean {
  return place === undefined || place === path || folded(place) === folded(path);
}

/** A filesystem that folds names opens a file under another spelling than its own. */
function folded(path: string): string {
  return path.normalize("NFC").toLowerCase();
}

function placeOf(fd: number): string | undefined {
  try {
    return readlinkSync(procName(fd));
  } catch {
    return undefined;
  }
}

function procName(fd: number): string {
  return `/proc/self/fd/${fd}`;
}
