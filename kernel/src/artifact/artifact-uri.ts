import { CookieError, type Digest, StreamName } from "@cookie-agent/sdk/protocol";

/** What a public artifact URI names: an artifact, or one stream of a manifest. */
export interface ArtifactAddress {
  readonly digest: Digest;
  readonly stream: string | null;
}

export const ARTIFACT_SCHEME = "artifact://";
const PUBLIC_FORM = /^artifact:\/\/([0-9a-f]{64})(?:\/(.+))?$/s;

/**
 * Reads `artifact://<digest>[/<stream>]`. Every other form, the internal one of stored references included, is
 * `artifact_uri` and never a path (T-140).
 */
export function parseArtifactUri(uri: string): ArtifactAddress {
  const match = PUBLIC_FORM.exec(uri);
  const digest = match?.[1];
  const stream = match?.[2] ?? null;
  if (digest === undefined || (stream !== null && !StreamName.safeParse(stream).success)) {
    throw new CookieError(
      "artifact_uri",
      "not an artifact URI: expected artifact:// and 64 lower-case hex digits, optionally followed by / and a stream name",
    );
  }
  return { digest, stream };
}

/** The form that models and people use. */
export function publicArtifactUri(digest: Digest, stream: string | null = null): string {
  const uri = `${ARTIFACT_SCHEME}${digest}`;
  return stream === null ? uri : `${uri}/${stream}`;
}

/** The form that stands in stored references only. */
export function storedArtifactReference(digest: Digest): string {
  return `${ARTIFACT_SCHEME}sha256/${digest}`;
}
