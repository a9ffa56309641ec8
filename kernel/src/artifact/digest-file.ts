import { createHash } from "node:crypto";
import { read } from "node:fs";
import { promisify } from "node:util";
import type { StoredArtifact } from "./artifact-store.ts";
import { TextMeter } from "./text-meter.ts";

const CHUNK_BYTES = 256 * 1024;
const readAt = promisify(read);

/** Reads a file from its beginning, in pieces, for its digest, length and lines. */
export async function digestFile(fd: number): Promise<StoredArtifact> {
  const hash = createHash("sha256");
  const meter = new TextMeter();
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await readAt(fd, buffer, 0, CHUNK_BYTES, meter.byteLength);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    hash.update(chunk);
    meter.add(chunk);
  }
  return { sha256: hash.digest("hex"), byteLength: meter.byteLength, lineCount: meter.lineCount };
}
