import { CookieError, type Digest, type SessionId } from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "./artifact-store.ts";
import { checkImage } from "./check-image.ts";
import { checkPdf } from "./check-pdf.ts";
import { inMebibytes } from "./gate-media.ts";
import { isDeclaredAs, type MediaType, SNIFF_BYTES, sniffMedia } from "./sniff-media.ts";

const MAX_BYTES = 20 * 1024 * 1024;
const MAX_VIDEO_BYTES = 25 * 1024 * 1024;

/** Media in the store that is whole and of a size that somebody takes. */
export interface InspectedMedia extends MediaType {
  readonly sha256: Digest;
  readonly byteLength: number;
}

export interface MediaClaim {
  readonly sha256: Digest;
  /** What somebody says it is. */
  readonly mime?: string | undefined;
  readonly filename?: string | null | undefined;
}

/** What an artifact is by its first bytes; undefined when that is no media. */
export async function sniffArtifact(
  store: ArtifactStore,
  rootId: SessionId,
  claim: MediaClaim,
): Promise<MediaType | undefined> {
  const artifact = await store.open(rootId, claim.sha256);
  try {
    const head = await artifact.read(0, SNIFF_BYTES);
    return sniffMedia(head, artifact.byteLength, claim.filename);
  } finally {
    await artifact.close();
  }
}

/**
 * Judges an artifact as media, strictly (T 4.1, 4.2). Rejects with `media_type` or `media_size`, or with what the store
 * says of the artifact.
 */
export async function inspectMedia(
  store: ArtifactStore,
  rootId: SessionId,
  claim: MediaClaim,
): Promise<InspectedMedia> {
  const { sha256, mime, filename } = claim;
  const artifact = await store.open(rootId, sha256);
  try {
    const { byteLength } = artifact;
    const type = sniffMedia(await artifact.read(0, SNIFF_BYTES), byteLength, filename);
    if (type === undefined) {
      throw malformed(claim, "its content is no image, PDF, audio or video that is known here");
    }
    if (mime !== undefined && !isDeclaredAs(type, mime)) {
      throw malformed(claim, `it was declared as ${mime}, its content is ${type.mime}`);
    }
    const maxBytes = type.kind === "video" ? MAX_VIDEO_BYTES : MAX_BYTES;
    if (byteLength > maxBytes) {
      throw new CookieError(
        "media_size",
        `${nameOf(claim)} has ${byteLength} bytes; ${type.kind} may have ${inMebibytes(maxBytes)} MiB`,
        { data: { limit: maxBytes } },
      );
    }
    if (type.kind === "image" || type.kind === "pdf") {
      const bytes = Buffer.from(await artifact.read(0, byteLength));
      const problem = type.kind === "pdf" ? checkPdf(bytes) : checkImage(bytes, type.mime);
      if (problem !== undefined) throw malformed(claim, `malformed ${type.mime}: ${problem}`);
    }
    return { ...type, sha256, byteLength };
  } finally {
    await artifact.close();
  }
}

function malformed(claim: MediaClaim, problem: string): CookieError {
  return new CookieError("media_type", `${nameOf(claim)} cannot be attached: ${problem}`);
}

function nameOf({ filename, sha256 }: MediaClaim): string {
  return filename ?? `artifact://${sha256}`;
}
