import type { ArtifactsWrite, ResultInput, SessionId } from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import { publicArtifactUri } from "../artifact/artifact-uri.ts";
import { importScratch } from "../artifact/import-scratch.ts";

/** A scratch file as an artifact, in the words of the wire. */
export async function storeScratch(
  store: ArtifactStore,
  rootId: SessionId,
  directory: string,
  name: string,
): Promise<ResultInput<typeof ArtifactsWrite>> {
  const { sha256, byteLength } = await importScratch(store, rootId, directory, name);
  return { uri: publicArtifactUri(sha256), sha256, bytes: byteLength };
}
