import type { Digest, SessionId } from "@cookie-agent/sdk/protocol";
import { sha256Hex } from "../support/digest.ts";
import type { ArtifactStore } from "./artifact-store.ts";

/** The whole content as it was attached, checked anew; undefined when it is missing or is not that any more (T 3.4). */
export async function loadMedia(
  store: ArtifactStore,
  rootId: SessionId,
  sha256: Digest,
  byteLength: number,
): Promise<Buffer | undefined> {
  try {
    const artifact = await store.open(rootId, sha256);
    try {
      const bytes = Buffer.from(await artifact.read(0, byteLength));
      return bytes.byteLength === byteLength && sha256Hex(bytes) === sha256 ? bytes : undefined;
    } finally {
      await artifact.close();
    }
  } catch {
    return undefined;
  }
}
