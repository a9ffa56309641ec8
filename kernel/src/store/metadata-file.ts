import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { SessionMeta } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { acceptorOf } from "../support/accept-plain.ts";
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
const isPlain = acceptorOf(Undated);

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

/**
 * Reads on this thread, because a listing reads thousands of these files and handing each to another takes longer
 * than reading it. Throws only when the disk fails in another way than a missing file.
 */
export function readMetadataFile(sessionDirectory: string): MetadataReading {
  let text: string | null;
  try {
    text = readBounded(metadataPath(sessionDirectory));
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return { kind: "absent" };
    throw error;
  }
  if (text === null) return { kind: "unparsable", problem: "it is no file, or too large" };
  const json = withoutUsage(parseJson(text));
  const parsed = isPlain(json) ? { success: true as const, data: json } : Undated.safeParse(json);
  if (!parsed.success) return { kind: "unparsable", problem: z.prettifyError(parsed.error) };
  const { last_activity, ...rest } = parsed.data;
  return {
    kind: "read",
    metadata: { ...rest, last_activity: last_activity ?? lastChange(logPath(sessionDirectory)) },
  };
}

/** What a session used stands beside what lists show of it. */
function withoutUsage(json: unknown): unknown {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return json;
  const { usage: _, ...rest } = json as Record<string, unknown>;
  return rest;
}

/** Null for what is no metadata. A pipe in its place must not be waited for, a link not be followed. */
function readBounded(path: string): string | null {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  const fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = fs.fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_METADATA_BYTES) return null;
    return fs.readFileSync(fd, "utf8");
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Replaces the cache by a rename without a sync: the name always resolves (S-071). After a loss of power it may be
 * empty, never half of two.
 */
export async function replaceMetadataFile(
  sessionDirectory: string,
  metadata: StoredMetadata,
): Promise<void> {
  const path = metadataPath(sessionDirectory);
  const name = `.${basename(path)}.${randomBytes(8).toString("hex")}.tmp`;
  const staged = join(dirname(path), name);
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

function lastChange(path: string): string {
  return fs.statSync(path).mtime.toISOString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
