import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { tryLockDescriptor } from "../support/file-lock.ts";
import { syncData } from "../support/sync-data.ts";
import type { StoredArtifact } from "./artifact-store.ts";
import { TextMeter } from "./text-meter.ts";

/** One write never holds the thread for longer than this many bytes take. */
const WRITE_BYTES = 64 * 1024;
/** So many bytes may be on their way to the disk before they are pushed. */
const SYNC_BYTES = 16 * 1024 * 1024;
/** After so many bytes other work gets a turn. */
const TURN_BYTES = 1024 * 1024;

const datasync = promisify(fs.fdatasync);
const nextTurn = promisify(setImmediate);

/**
 * A file on its way to its digest: created exclusively with mode 0600, locked while its writer lives, hashed and
 * metered as it grows (T-131).
 */
export class TemporaryFile {
  readonly directory: string;
  readonly #path: string;
  readonly #fd: number;
  readonly #hash = createHash("sha256");
  readonly #meter = new TextMeter();
  #sealed: StoredArtifact | undefined;
  #open = true;
  #syncing: Promise<void> | undefined;
  #syncedBytes = 0;

  private constructor(directory: string, path: string, fd: number) {
    this.directory = directory;
    this.#path = path;
    this.#fd = fd;
  }

  static async create(directory: string, name: string): Promise<TemporaryFile> {
    const path = join(directory, name);
    let fd: number;
    try {
      fd = fs.openSync(path, "wx+", 0o600);
    } catch (error) {
      throw storageError("output cannot be stored", error);
    }
    const file = new TemporaryFile(directory, path, fd);
    try {
      if (!(await tryLockDescriptor(fd))) throw new Error("the lock of a new file is taken");
    } catch (error) {
      file.discard();
      throw storageError("output cannot be stored", error);
    }
    return file;
  }

  get byteLength(): number {
    return this.#meter.byteLength;
  }

  /** All of `parts` or none: a failed write cuts the file back to what was accepted before (T-132). */
  async append(...parts: readonly Uint8Array[]): Promise<void> {
    if (!this.#open || this.#sealed)
      throw new CookieError("execution_failed", "the output is closed");
    const accepted = this.#meter.byteLength;
    try {
      await this.#writeAll(parts, accepted);
    } catch (error) {
      if (this.#open) this.#cutBack(accepted);
      throw storageError("output could not be written", error);
    }
    for (const bytes of parts) {
      this.#hash.update(bytes);
      this.#meter.add(bytes);
    }
    this.#syncBehind();
  }

  async #writeAll(parts: readonly Uint8Array[], start: number): Promise<void> {
    let position = start;
    let turnEnd = start + TURN_BYTES;
    for (const bytes of parts) {
      for (let at = 0; at < bytes.byteLength; ) {
        if (position >= turnEnd) {
          await this.#yield();
          turnEnd = position + TURN_BYTES;
        }
        const length = Math.min(WRITE_BYTES, bytes.byteLength - at);
        const written = fs.writeSync(this.#fd, bytes, at, length, position);
        at += written;
        position += written;
      }
    }
  }

  /** A flood goes to the disk while it comes; its end would otherwise wait for all of it. */
  #syncBehind(): void {
    const { byteLength } = this.#meter;
    if (this.#syncing !== undefined || byteLength - this.#syncedBytes < SYNC_BYTES) return;
    this.#syncedBytes = byteLength;
    // A failure shows again when the file is published.
    this.#syncing = datasync(this.#fd)
      .catch(() => undefined)
      .finally(() => {
        this.#syncing = undefined;
        if (!this.#open) fs.closeSync(this.#fd);
      });
  }

  seal(): StoredArtifact {
    this.#sealed ??= {
      sha256: this.#hash.digest("hex"),
      byteLength: this.#meter.byteLength,
      lineCount: this.#meter.lineCount,
    };
    return this.#sealed;
  }

  /**
   * Makes the content durable and renames it to `target`. Only its length is compared: bytes read back now would come
   * from memory, so whoever reads the artifact first checks its digest.
   */
  async moveTo(target: string): Promise<void> {
    const { byteLength } = this.seal();
    try {
      await this.#syncing;
      await (byteLength <= WRITE_BYTES ? syncData(this.#fd) : datasync(this.#fd));
      if (fs.fstatSync(this.#fd).size !== byteLength) {
        throw new Error("the file does not have the length of what was written");
      }
      // A capture may have grown for longer than the collector's grace period.
      const now = new Date();
      fs.futimesSync(this.#fd, now, now);
      fs.renameSync(this.#path, target);
    } catch (error) {
      this.discard();
      throw storageError("output could not be stored", error);
    }
    this.#close();
  }

  discard(): void {
    if (!this.#open) return;
    fs.rmSync(this.#path, { force: true });
    this.#close();
  }

  async #yield(): Promise<void> {
    await nextTurn();
    if (!this.#open) throw new Error("the output was discarded");
  }

  #cutBack(byteLength: number): void {
    try {
      fs.ftruncateSync(this.#fd, byteLength);
    } catch {
      // What lies beyond the accepted length makes the digest check fail; nothing false is published.
    }
  }

  #close(): void {
    this.#open = false;
    // A sync under way still has the descriptor; it closes it then.
    if (this.#syncing === undefined) fs.closeSync(this.#fd);
  }
}

function storageError(what: string, cause: unknown): CookieError {
  const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "I/O error";
  return new CookieError("execution_failed", `${what}: ${reason}`, { cause });
}
