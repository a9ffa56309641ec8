import { open } from "node:fs/promises";
import { join } from "node:path";
import {
  CookieError,
  Digest,
  SessionId,
  Timestamp,
  TreeApprovalGrantId,
} from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { syncDirectory } from "../support/durable-replace.ts";
import { withFileLock } from "../support/file-lock.ts";
import { hasCode } from "../support/has-code.ts";
import { Mailbox } from "../support/mailbox.ts";
import { LocalLogFile } from "./local-log-file.ts";
import type { LogFile } from "./session-store.ts";

const JOURNAL_FILE = "grant-invalidations.jsonl";
const LOCK_FILE = ".store.lock";
const MAX_LINE_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

const sortedUnique = <T extends z.ZodType<string>>(item: T) =>
  z
    .array(item)
    .min(1)
    .refine((list) => list.every((one, at) => at === 0 || (list[at - 1] ?? "") < one), {
      error: "expected in order, each once",
    });

/** Grants of one tree that hold no more (S 6.11). */
const GrantInvalidation = z.strictObject({
  seq: z.int().min(1),
  timestamp: Timestamp,
  root_session_id: SessionId,
  grant_ids: sortedUnique(TreeApprovalGrantId),
  /** What the grants were for. */
  resource_digests: sortedUnique(Digest),
});
type GrantInvalidation = z.infer<typeof GrantInvalidation>;

export type InvalidatedGrants = Omit<GrantInvalidation, "seq" | "timestamp">;

/**
 * The invalidated grants of one store, shared by every process that works in it (S 3.1). It is read strictly: a line
 * that is not a record, or not the next one, is `storage_failed` (S-057); only a torn last line is dropped.
 */
export class GrantJournal {
  readonly #directory: string;
  readonly #path: string;
  readonly #openFile: (path: string, writable: boolean) => Promise<LogFile>;
  readonly #appends = new Mailbox();

  /** @param openFile Opens the journal's file, which exists; the local disk by default. */
  constructor(directory: string, openFile = openLocalFile) {
    this.#directory = directory;
    this.#path = join(directory, JOURNAL_FILE);
    this.#openFile = openFile;
  }

  /** Takes no lock: what another process is just writing concerns none of the caller's trees. */
  async invalidatedIn(rootId: SessionId): Promise<Set<TreeApprovalGrantId>> {
    const found = new Set<TreeApprovalGrantId>();
    let file: LogFile;
    try {
      file = await this.#openFile(this.#path, false);
    } catch (error) {
      if (hasCode(error, "ENOENT")) return found;
      throw this.#failed(error);
    }
    try {
      await this.#read(file, (record) => {
        if (record.root_session_id !== rootId) return;
        for (const grantId of record.grant_ids) found.add(grantId);
      });
      return found;
    } catch (error) {
      throw this.#failed(error);
    } finally {
      await file.close();
    }
  }

  /** Resolves once the record is durable; opens the file anew each time, so a failure leaves nothing behind (S-175). */
  append(invalidated: InvalidatedGrants): Promise<void> {
    return this.#appends.run(async () => {
      try {
        await withFileLock(join(this.#directory, LOCK_FILE), () => this.#append(invalidated));
      } catch (error) {
        throw this.#failed(error);
      }
    });
  }

  async #append(invalidated: InvalidatedGrants): Promise<void> {
    await this.#create();
    const file = await this.#openFile(this.#path, true);
    try {
      const { tip, completeBytes } = await this.#read(file, () => undefined);
      if (completeBytes < file.byteLength) await file.truncate(completeBytes);
      if (completeBytes === 0) await syncDirectory(this.#directory);
      const record = GrantInvalidation.parse({
        seq: tip + 1,
        timestamp: new Date().toISOString(),
        ...invalidated,
      });
      try {
        await file.append(Buffer.from(`${JSON.stringify(record)}\n`));
        await file.sync();
      } catch (error) {
        // A record that stays behind takes grants back for a change that did not happen, which harms nobody.
        await file.truncate(completeBytes).catch(() => undefined);
        throw error;
      }
    } finally {
      await file.close();
    }
  }

  async #create(): Promise<void> {
    try {
      const created = await open(this.#path, "wx", 0o600);
      await created.close();
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }

  async #read(
    file: LogFile,
    take: (record: GrantInvalidation) => void,
  ): Promise<{ tip: number; completeBytes: number }> {
    let tip = 0;
    let completeBytes = 0;
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of file.read()) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        const record = this.#parse(rest.subarray(0, end), tip + 1);
        take(record);
        tip = record.seq;
        completeBytes += end + 1;
        rest = rest.subarray(end + 1);
      }
      if (rest.byteLength > MAX_LINE_BYTES) throw this.#corrupt(tip + 1, "it is too long");
    }
    return { tip, completeBytes };
  }

  #parse(line: Uint8Array, seq: number): GrantInvalidation {
    let value: unknown;
    try {
      value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
    } catch {
      throw this.#corrupt(seq, "it is not JSON");
    }
    const parsed = GrantInvalidation.safeParse(value);
    if (!parsed.success) throw this.#corrupt(seq, "it is not a record of invalidated grants");
    if (parsed.data.seq !== seq) throw this.#corrupt(seq, `it has the number ${parsed.data.seq}`);
    return parsed.data;
  }

  #corrupt(line: number, problem: string): CookieError {
    return new CookieError(
      "storage_failed",
      `${this.#path} is damaged in line ${line}: ${problem}; no remembered approval counts until ` +
        "the file is as it was; restore it from a copy, or go on in new sessions",
    );
  }

  #failed(cause: unknown): CookieError {
    if (cause instanceof CookieError) return cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new CookieError(
      "storage_failed",
      `${this.#path} failed (${reason}); free space or repair the disk and try again`,
      { cause },
    );
  }
}

function openLocalFile(path: string, writable: boolean): Promise<LogFile> {
  if (!writable) return LocalLogFile.open(path);
  // The store's lock stands for the lease of a tree.
  return LocalLogFile.open(path, { held: true });
}
