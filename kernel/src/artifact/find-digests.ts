import type { Digest } from "@cookie-agent/sdk/protocol";

const DIGEST = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;
const DIGEST_CHARS = 64;

/**
 * Finds every digest in a log, by its form alone: an event of a kind that is not known here, or on a damaged line, may
 * still name an artifact. What happens to look like a digest costs nothing but the space of a file.
 */
export async function* findDigests(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Digest> {
  let carried = "";
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const text = carried + bytes.toString("latin1");
    for (const [digest] of text.matchAll(DIGEST)) yield digest;
    // One that is cut by the end of the chunk is whole with the next.
    carried = text.slice(-DIGEST_CHARS);
  }
}
