import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { LogFile } from "../store/session-store.ts";
import type { GroupCommit } from "./group-commit.ts";
import { storageFailed } from "./storage-failed.ts";

export interface LogWriterOptions {
  readonly sessionId: SessionId;
  readonly file: LogFile;
  readonly sync: GroupCommit;
  /** Opens the same log anew after a failure. */
  reopen(): Promise<LogFile>;
}

/**
 * Appends blocks to a log file and keeps it whole: after a failed write or sync the next append opens the file
 * anew, cuts it at the last durable byte and writes what was already published again (S-246).
 */
export class LogWriter {
  readonly #sessionId: SessionId;
  readonly #sync: GroupCommit;
  readonly #reopen: () => Promise<LogFile>;
  #file: LogFile;
  #durableBytes: number;
  /** Published without a sync since the last one: the stream records of at most one model turn. */
  #undurable: Uint8Array[] = [];
  #failed = false;

  constructor(options: LogWriterOptions) {
    this.#sessionId = options.sessionId;
    this.#sync = options.sync;
    this.#reopen = options.reopen;
    this.#file = options.file;
    this.#durableBytes = options.file.byteLength;
  }

  /** True from a failed write or sync until the next append has opened the file anew. */
  get failed(): boolean {
    return this.#failed;
  }

  get byteLength(): number {
    return this.#file.byteLength;
  }

  read(fromByte: number): AsyncIterable<Uint8Array> {
    return this.#file.read(fromByte);
  }

  /** Opens the file anew after a failure; to be called before anything is appended. */
  async ensureWhole(): Promise<void> {
    if (!this.#failed) return;
    try {
      await this.#file.close().catch(() => undefined);
      this.#file = await this.#reopen();
      if (this.#file.byteLength < this.#durableBytes) {
        throw new Error("it is shorter than what was already durable");
      }
      await this.#file.truncate(this.#durableBytes);
      for (const block of this.#undurable) await this.#file.append(block);
      this.#failed = false;
    } catch (error) {
      throw storageFailed(this.#sessionId, error);
    }
  }

  /** Writes a block without waiting for it to be durable. */
  async append(block: Uint8Array): Promise<void> {
    try {
      await this.#file.append(block);
    } catch (error) {
      this.#failed = true;
      throw storageFailed(this.#sessionId, error);
    }
  }

  /** Says that these bytes of the last block are published although they are not durable. */
  keepUndurable(bytes: Uint8Array): void {
    if (bytes.byteLength > 0) this.#undurable.push(bytes);
  }

  /** Waits until everything appended is durable; on failure only what was published before remains. */
  async commit(): Promise<void> {
    const byteLength = this.#file.byteLength;
    try {
      await this.#sync.sync(this.#file);
    } catch (error) {
      this.#failed = true;
      await this.#takeBack();
      throw storageFailed(this.#sessionId, error);
    }
    this.#durableBytes = byteLength;
    this.#undurable = [];
  }

  /** Keeps who reads the file next, perhaps after a crash, from finding what was refused. */
  async #takeBack(): Promise<void> {
    const published = this.#undurable.reduce((sum, block) => sum + block.byteLength, 0);
    await this.#file.truncate(this.#durableBytes + published).catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
