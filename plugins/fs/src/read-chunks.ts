import { read } from "node:fs";
import { promisify } from "node:util";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { diskError } from "./disk-error.ts";

const CHUNK_BYTES = 256 * 1024;
const SMALL_CHUNK_BYTES = 64 * 1024;

const readAt = promisify(read);

/**
 * The bytes behind a descriptor from its start to its end. Every chunk is a view of one reused buffer: it is
 * valid until the next one is asked for.
 *
 * @param size Known size of the file: reading stops there. 0 reads to the end, as procfs needs.
 */
export async function* readChunks(
  fd: number,
  path: string,
  signal?: AbortSignal,
  size = 0,
): AsyncGenerator<Buffer, void, undefined> {
  const end = size === 0 ? Number.POSITIVE_INFINITY : size;
  let buffer = Buffer.allocUnsafeSlow(Math.min(SMALL_CHUNK_BYTES, end));
  let position = 0;
  while (position < end) {
    if (signal?.aborted) throw new ToolError("cancelled", `reading ${path} was cancelled`);
    const bytesRead = await readInto(fd, buffer, position, path);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
    if (position === SMALL_CHUNK_BYTES) buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  }
}

async function readInto(
  fd: number,
  buffer: Buffer,
  position: number,
  path: string,
): Promise<number> {
  try {
    return (await readAt(fd, buffer, 0, buffer.length, position)).bytesRead;
  } catch (error) {
    throw diskError(`cannot read ${path}`, error);
  }
}
