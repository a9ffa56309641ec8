import { constants, fstatSync, type PathLike, writeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { syncData } from "../support/sync-data.ts";
import type { LogFile, TreeLease } from "./session-store.ts";

const READ_BYTES = 256 * 1024;
const DIRECT_BYTES = 64 * 1024;

type Held = Pick<TreeLease, "held">;

/** A log on the local disk; writable only with a lease, and only while it is held (S-088). */
export class LocalLogFile implements LogFile {
  readonly #handle: FileHandle;
  readonly #lease: Held | undefined;
  #byteLength: number;
  #closed = false;

  private constructor(handle: FileHandle, byteLength: number, lease: Held | undefined) {
    this.#handle = handle;
    this.#byteLength = byteLength;
    this.#lease = lease;
  }

  static async open(path: PathLike, lease?: Held): Promise<LocalLogFile> {
    const access = lease === undefined ? constants.O_RDONLY : constants.O_RDWR;
    // O_NONBLOCK: opening a pipe must not wait for its other end.
    const handle = await open(
      path,
      access | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    );
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new Error("it is no regular file");
      return new LocalLogFile(handle, found.size, lease);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  async *read(fromByte = 0): AsyncGenerator<Uint8Array> {
    const end = this.#byteLength;
    let position = fromByte;
    let reading = this.#readChunk(position, end);
    while (position < end) {
      const chunk = await reading;
      if (chunk.byteLength === 0) return;
      position += chunk.byteLength;
      // The disk works on the next chunk while the reader works on this one.
      reading = this.#readChunk(position, end);
      reading.catch(() => undefined);
      yield chunk;
    }
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#requireLease();
    let written = 0;
    try {
      while (written < bytes.byteLength) {
        written += await this.#write(bytes, written);
      }
    } catch (error) {
      // What was written of the block must not be read as part of the log.
      await this.#handle.truncate(this.#byteLength).catch(() => undefined);
      throw error;
    }
    this.#byteLength += written;
  }

  /** Rejects also when the file has been removed: what it takes would be gone with this process. */
  async sync(): Promise<void> {
    await syncData(this.#handle.fd);
    if (fstatSync(this.#handle.fd).nlink === 0)
      throw new Error("its log was removed from the disk");
  }

  async truncate(byteLength: number): Promise<void> {
    this.#requireLease();
    await this.#handle.truncate(byteLength);
    this.#byteLength = byteLength;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#handle.close();
  }

  async #readChunk(position: number, end: number): Promise<Uint8Array> {
    const chunk = Buffer.allocUnsafe(Math.max(0, Math.min(READ_BYTES, end - position)));
    if (chunk.byteLength === 0) return chunk;
    const { bytesRead } = await this.#handle.read(chunk, 0, chunk.byteLength, position);
    return chunk.subarray(0, bytesRead);
  }

  /** A small block only reaches the page cache: handing it to another thread would take longer than writing it. */
  async #write(bytes: Uint8Array, start: number): Promise<number> {
    const length = bytes.byteLength - start;
    const position = this.#byteLength + start;
    if (length <= DIRECT_BYTES) return writeSync(this.#handle.fd, bytes, start, length, position);
    return (await this.#handle.write(bytes, start, length, position)).bytesWritten;
  }

  #requireLease(): void {
    if (this.#lease?.held) return;
    throw new CookieError("session_foreign", "the log is open for reading only");
  }
}
