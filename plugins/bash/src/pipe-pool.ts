import { execFile } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { PipeReader } from "./pipe-reader.ts";

/** Named pipes made at once; each is opened by both sides, loses its name and is never used again. */
const BATCH = 32;
/** With fewer left the next batch is made, while the command that took the last one runs. */
const LOW = 8;

const run = promisify(execFile);

/** One pipe: the end for a child, and what comes out at ours. */
export interface OutputPipe {
  /** Descriptor for the child; closed by `release`. */
  readonly childEnd: number;
  readonly output: PipeReader;
  /** Gives up our copy of the child's end, once the child has its own. */
  release(): void;
}

/**
 * Real pipes for the output of commands. Node gives a child sockets instead, and a socket cannot be opened by name:
 * a command that writes to `/dev/stdout` or `/dev/stderr` would fail.
 */
export class PipePool {
  readonly #parent: string;
  readonly #ready: string[] = [];
  #folder: string | undefined;
  #made = 0;
  #filling: Promise<void> | undefined;
  #unavailable = false;

  /** @param parent A private folder for the names. */
  constructor(parent: string) {
    this.#parent = parent;
  }

  /** One fresh pipe; undefined where named pipes cannot be made. */
  async take(): Promise<OutputPipe | undefined> {
    while (this.#ready.length === 0 && !this.#unavailable) await this.fill();
    const path = this.#ready.pop();
    if (path === undefined) return undefined;
    try {
      return openPipe(path, () => {
        if (this.#ready.length < LOW && !this.#unavailable) void this.fill();
      });
    } catch {
      return undefined;
    }
  }

  /** Makes the next batch of names ahead of need. Never rejects. */
  fill(): Promise<void> {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async close(): Promise<void> {
    this.#unavailable = true;
    // A folder that still gets names cannot be removed.
    await this.#filling;
    this.#ready.length = 0;
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  async #fill(): Promise<void> {
    try {
      this.#folder ??= mkdtempSync(join(this.#parent, "pipes-"));
      const folder = this.#folder;
      const first = this.#made;
      this.#made += BATCH;
      const paths = Array.from({ length: BATCH }, (_, index) => join(folder, `${first + index}`));
      await run("mkfifo", ["-m", "600", ...paths]);
      this.#ready.push(...paths);
    } catch {
      this.#unavailable = true;
    }
  }
}

function openPipe(path: string, onReleased: () => void): OutputPipe {
  // Our end first and without waiting: opening the child's end would block until there is a reader.
  const ourEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const childEnd = openSync(path, constants.O_WRONLY);
    unlinkSync(path);
    return {
      childEnd,
      output: PipeReader.ofDescriptor(ourEnd),
      release: () => {
        closeSync(childEnd);
        onReleased();
      },
    };
  } catch (error) {
    closeSync(ourEnd);
    throw error;
  }
}
