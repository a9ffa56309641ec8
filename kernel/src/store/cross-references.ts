import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { Digest, SessionId } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { syncDirectory } from "../support/durable-replace.ts";
import { withFileLock } from "../support/file-lock.ts";
import { hasCode } from "../support/has-code.ts";
import { syncData } from "../support/sync-data.ts";
import type { CrossReference } from "./session-store.ts";

const LEDGER_FILE = "cross-refs.jsonl";
const LOCK_FILE = ".cross-refs.lock";
const NEWLINE = 0x0a;

const StoredReference = z.object({
  digest: Digest,
  from_root: SessionId,
  to_root: z.union([SessionId, z.literal("shared")]),
  seq: z.int().min(1),
});

/** Appends to the ledger of a store under a lock that several processes share. */
export async function recordCrossReferences(
  storeDirectory: string,
  references: readonly CrossReference[],
): Promise<void> {
  if (references.length === 0) return;
  const lines = references.map(
    (reference) => `${JSON.stringify(StoredReference.parse(reference))}\n`,
  );
  await withFileLock(join(storeDirectory, LOCK_FILE), async () => {
    const flags =
      constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);
    const ledger = await open(join(storeDirectory, LEDGER_FILE), flags, 0o600);
    try {
      const { size } = await ledger.stat();
      if (size === 0) await syncDirectory(storeDirectory);
      const separator = (await endsTorn(ledger, size)) ? "\n" : "";
      await ledger.writeFile(separator + lines.join(""));
      await syncData(ledger.fd);
    } finally {
      await ledger.close();
    }
  });
}

/** The references of a store; lines that cannot be read, a torn last one among them, are left out. */
export async function readCrossReferences(storeDirectory: string): Promise<CrossReference[]> {
  let ledger: FileHandle;
  try {
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
    ledger = await open(join(storeDirectory, LEDGER_FILE), flags);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
  try {
    const lines = (await ledger.readFile("utf8")).split("\n").slice(0, -1);
    return lines.flatMap((line) => {
      const parsed = StoredReference.safeParse(parseJson(line));
      return parsed.success ? [parsed.data] : [];
    });
  } finally {
    await ledger.close();
  }
}

async function endsTorn(ledger: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer } = await ledger.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== NEWLINE;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
