import { createHash } from "node:crypto";
import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Digest } from "@cookie-agent/sdk/protocol";
import { hasCode } from "../support/has-code.ts";
import { compareUtf8 } from "./compare-utf8.ts";
import { readBoundedFile } from "./read-bounded-file.ts";

const DOMAIN = "cookie-agent:workspace:1\0";
const MAX_ENTRIES = 10_000;
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** What the loader itself reads; of the rest only the kind is kept. */
const LOADED = /^(?:config\.toml|agents\/[^/]*\.md|skills\/[^/]+\/SKILL\.md)$/;

export interface WorkspaceEntry {
  readonly kind: "file" | "directory" | "link";
  /** Exactly the bytes that were hashed; only of files that configuration is loaded from. */
  readonly bytes?: Uint8Array;
}

/** Entries by path relative to the layer directory, `/` between segments. */
export type WorkspaceContent = ReadonlyMap<string, WorkspaceEntry>;

export type WorkspaceDigest =
  | { readonly trustable: true; readonly digest: Digest; readonly content: WorkspaceContent }
  | { readonly trustable: false; readonly reason: string };

/** A state of the directory that no digest can stand for. */
class Untrustable extends Error {}

/**
 * SHA-256 over everything under a workspace layer directory: per entry, sorted, its path, kind, executable bit,
 * byte length and content; of a link its text, which is not followed (C 2.9).
 */
export async function digestWorkspace(layerDirectory: string): Promise<WorkspaceDigest> {
  try {
    const kinds = await listEntries(layerDirectory);
    const hash = createHash("sha256").update(DOMAIN);
    const content = new Map<string, WorkspaceEntry>();
    let totalBytes = 0;
    for (const [path, kind] of [...kinds].sort(([a], [b]) => compareUtf8(a, b))) {
      const entry = await readEntry(join(layerDirectory, path), kind, MAX_TOTAL_BYTES - totalBytes);
      totalBytes += entry.bytes.length;
      hash.update(byteLength(Buffer.byteLength(path))).update(path);
      hash.update(`${kind}${entry.executable ? "+x" : ""}\0`);
      hash.update(byteLength(entry.bytes.length)).update(entry.bytes);
      const kept = kind === "file" && LOADED.test(path);
      content.set(path, kept ? { kind, bytes: entry.bytes } : { kind });
    }
    return { trustable: true, digest: hash.digest("hex"), content };
  } catch (error) {
    if (error instanceof Untrustable) return { trustable: false, reason: error.message };
    if (hasCode(error, "ENOENT", "ENOTDIR", "EACCES")) {
      return { trustable: false, reason: "it changed while it was read or cannot be read" };
    }
    throw error;
  }
}

async function listEntries(root: string): Promise<Map<string, WorkspaceEntry["kind"]>> {
  const kinds = new Map<string, WorkspaceEntry["kind"]>();
  const pending = [""];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      if (entry.name.includes("\ufffd")) throw new Untrustable("a file name is not valid UTF-8");
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const kind = entry.isFile()
        ? "file"
        : entry.isDirectory()
          ? "directory"
          : entry.isSymbolicLink()
            ? "link"
            : undefined;
      if (kind === undefined) {
        throw new Untrustable("it holds something that is no file, directory or link");
      }
      kinds.set(path, kind);
      if (kinds.size > MAX_ENTRIES) throw new Untrustable(`it has over ${MAX_ENTRIES} entries`);
      if (kind === "directory") pending.push(path);
    }
  }
  return kinds;
}

async function readEntry(
  path: string,
  kind: WorkspaceEntry["kind"],
  maxBytes: number,
): Promise<{ bytes: Uint8Array; executable: boolean }> {
  if (kind === "directory") return { bytes: new Uint8Array(), executable: false };
  if (kind === "link") {
    return { bytes: await readlink(path, { encoding: "buffer" }), executable: false };
  }
  const read = await readBoundedFile(path, maxBytes, { followLinks: false });
  if (read.kind === "bytes") return read;
  throw new Untrustable(
    read.kind === "too_large"
      ? `it is over ${MAX_TOTAL_BYTES} bytes`
      : "it changed while it was read",
  );
}

function byteLength(length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(length));
  return bytes;
}
