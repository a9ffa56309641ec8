import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { hasCode } from "../support/has-code.ts";
import { isLink } from "./is-link.ts";

export type BoundedRead =
  | { readonly kind: "missing" }
  /** Not a regular file, a link to nothing, or a link where links are not followed. */
  | { readonly kind: "not_regular" }
  /** At most `maxBytes + 1` bytes were read; `byteLength` is what the file system says. */
  | { readonly kind: "too_large"; readonly head: Uint8Array; readonly byteLength: number }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly executable: boolean };

/** Reads a regular file without ever holding more than the limit and one byte (C-024). */
export async function readBoundedFile(
  path: string,
  maxBytes: number,
  options: { followLinks: boolean },
): Promise<BoundedRead> {
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const flags =
    constants.O_RDONLY | constants.O_NONBLOCK | (options.followLinks ? 0 : constants.O_NOFOLLOW);
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, flags);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) {
      return { kind: (await isLink(path)) ? "not_regular" : "missing" };
    }
    if (hasCode(error, "ELOOP", "EISDIR", "ENXIO")) return { kind: "not_regular" };
    throw error;
  }
  try {
    const facts = await file.stat();
    if (!facts.isFile()) return { kind: "not_regular" };
    const buffer = Buffer.alloc(Math.min(facts.size, maxBytes) + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    const bytes = buffer.subarray(0, length);
    if (facts.size > maxBytes || length > maxBytes) {
      return { kind: "too_large", head: bytes, byteLength: Math.max(facts.size, length) };
    }
    return { kind: "bytes", bytes, executable: (facts.mode & 0o111) !== 0 };
  } finally {
    await file.close();
  }
}
