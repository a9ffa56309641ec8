import { constants } from "node:fs";
import { appendFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../support/logger.ts";
import { makeDirectory } from "../support/make-directory.ts";

/** A file that has grown over this becomes `<name>.log.1`, in place of the one before. */
const MAX_FILE_BYTES = 1024 * 1024;
/** What waits to be written; more is left out and counted. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Opening a pipe that lies in the file's place must not wait for a reader. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

interface LogFile {
  waiting: string[];
  waitingBytes: number;
  skipped: number;
  writing: Promise<void>;
}

/**
 * Keeps what plugins write to stderr and to the log, one file per plugin or shared host below `<root>/logs` (E-010). A
 * disk that takes nothing costs log lines and nothing else.
 */
export class PluginLogFiles implements Logger {
  readonly #directory: string;
  readonly #next: Logger;
  readonly #files = new Map<string, LogFile>();

  constructor(root: string, next: Logger) {
    this.#directory = join(root, "logs");
    this.#next = next;
  }

  log(
    level: Parameters<Logger["log"]>[0],
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ): void {
    this.#next.log(level, message, fields);
    const { plugin, ...rest } = fields ?? {};
    if (typeof plugin !== "string") return;
    const more = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
    const text = `${message}${more}`.replace(/\s*[\r\n]+\s*/g, " ");
    this.#append(
      plugin.replace(/[^a-z0-9._-]/g, "-"),
      `${new Date().toISOString()} ${level} ${text}\n`,
    );
  }

  /** Waits until what was logged is written. */
  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map(({ writing }) => writing));
  }

  #append(name: string, line: string): void {
    const file = this.#files.get(name) ?? {
      waiting: [],
      waitingBytes: 0,
      skipped: 0,
      writing: Promise.resolve(),
    };
    this.#files.set(name, file);
    if (file.waitingBytes + line.length > MAX_WAITING_BYTES) {
      file.skipped += 1;
      return;
    }
    file.waiting.push(line);
    file.waitingBytes += line.length;
    // Lines that come while a write is under way share the next one.
    if (file.waiting.length === 1) file.writing = file.writing.then(() => this.#write(name, file));
  }

  async #write(name: string, file: LogFile): Promise<void> {
    const { waiting, skipped } = file;
    file.waiting = [];
    file.waitingBytes = 0;
    file.skipped = 0;
    if (skipped > 0)
      waiting.push(`${new Date().toISOString()} warn ${skipped} more lines were not kept\n`);
    const path = join(this.#directory, `${name}.log`);
    try {
      await makeDirectory(this.#directory);
      const size = await stat(path).then(
        (found) => found.size,
        () => 0,
      );
      if (size > MAX_FILE_BYTES) await rename(path, `${path}.1`);
      await appendFile(path, waiting.join(""), { mode: 0o600, flag: APPEND });
    } catch {
      // The log sink has had it; there is nobody else to tell.
    }
  }
}
