import { randomBytes } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SessionMeta } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { sleep } from "../support/deadline.ts";
import { hasCode } from "../support/has-code.ts";
import type { StoredMetadata } from "./session-store.ts";

const METADATA_FILE = "metadata";
const LOG_FILE = "events.jsonl";
const MAX_METADATA_BYTES = 1024 * 1024;
const REPLACE_TRIES = 50;
const REPLACE_DELAY_MS = 25;

const Metadata = SessionMeta.omit({ access: true });
const Undated = Metadata.partial({ last_activity: true });

export type MetadataReading =
  | { kind: "read"; metadata: StoredMetadata }
  /** A publication that is not complete, or no session at all. */
  | { kind: "absent" }
  | { kind: "unparsable"; problem: string };

export function metadataPath(sessionDirectory: string): string {
  return join(sessionDirectory, METADATA_FILE);
}

export function logPath(sessionDirectory: string): string {
  return join(sessionDirectory, LOG_FILE);
}

export function encodeMetadata(metadata: StoredMetadata): string {
  return `${JSON.stringify(metadata, null, 2)}\n`;
}

/** Rejects only when the disk fails in another way than a missing file. */
export async function readMetadataFile(sessionDirectory: string): Promise<MetadataReading> {
  const path = metadataPath(sessionDirectory);
  let text: string;
  try {
    if ((await stat(path)).size > MAX_METADATA_BYTES) {
      return { kind: "unparsable", problem: "it is too large" };
    }
    text = await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return { kind: "absent" };
    throw error;
  }
  const parsed = Undated.safeParse(parseJson(text));
  if (!parsed.success) return { kind: "unparsable", problem: z.prettifyError(parsed.error) };
  const { last_activity = await lastChange(logPath(sessionDirectory)), ...rest } = parsed.data;
  return { kind: "read", metadata: { ...rest, last_activity } };
}

/** Replaces the cache by a rename without a sync: the name always resolves (S-071). */
export async function replaceMetadataFile(
  sessionDirectory: string,
  metadata: StoredMetadata,
): Promise<void> {
  const path = metadataPath(sessionDirectory);
  const staged = join(dirname(path), `.${METADATA_FILE}.${randomBytes(8).toString("hex")}.tmp`);
  try {
    await writeFile(staged, encodeMetadata(metadata), { mode: 0o600, flag: "wx" });
    await renameStubbornly(() => rename(staged, path));
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** Windows refuses to replace a file that someone has open; it is tried again for a while (S-251). */
export async function renameStubbornly(
  replace: () => Promise<void>,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await replace();
    } catch (error) {
      const isBusy = platform === "win32" && hasCode(error, "EPERM", "EACCES", "EBUSY");
      if (!isBusy || tries >= REPLACE_TRIES) throw error;
      await sleep(REPLACE_DELAY_MS);
    }
  }
}

async function lastChange(path: string): Promise<string> {
  return (await stat(path)).mtime.toISOString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
