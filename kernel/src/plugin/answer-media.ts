import {
  type ContextId,
  CookieError,
  type Digest,
  type MediaDeliver,
  type MediaSniff,
  type ParamsOf,
  type ResultInput,
} from "@cookie-agent/sdk/protocol";
import { parseArtifactUri, publicArtifactUri } from "../artifact/artifact-uri.ts";
import { gateMedia } from "../artifact/gate-media.ts";
import { importScratch, readScratchHead } from "../artifact/import-scratch.ts";
import { inspectMedia, sniffArtifact } from "../artifact/inspect-media.ts";
import { type MediaType, SNIFF_BYTES, sniffMedia } from "../artifact/sniff-media.ts";
import { decodeBase64 } from "../support/decode-base64.ts";
import { requireReadable } from "./artifact-rights.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";
import { requireSession } from "./open-context.ts";

const MAX_SNIFF_DATA_BYTES = 64 * 1024;

/** What some content is (T-151); undefined media are null. */
export async function sniffContent(
  context: CallContext,
  params: ParamsOf<typeof MediaSniff>,
  options: HostRequestsOptions,
): Promise<ResultInput<typeof MediaSniff>> {
  const type = await typeOf(context, params, options);
  return type ?? { mime: null };
}

async function typeOf(
  context: CallContext,
  { context_id: contextId, artifact, scratch, data }: ParamsOf<typeof MediaSniff>,
  options: HostRequestsOptions,
): Promise<MediaType | undefined> {
  if (artifact !== undefined) {
    const { artifacts } = options.services;
    const sha256 = readableDigest(context, contextId, artifact, options);
    return sniffArtifact(artifacts, context.rootSessionId, { sha256 });
  }
  if (scratch !== undefined) {
    const { head, byteLength } = await readScratchHead(options.scratch(), scratch, SNIFF_BYTES);
    return sniffMedia(head, byteLength, scratch);
  }
  const bytes = decodeBase64(data ?? "");
  if (bytes === undefined || bytes.byteLength > MAX_SNIFF_DATA_BYTES) {
    throw new CookieError(
      "invalid_params",
      `host/media/sniff: data: expected base64 of at most ${MAX_SNIFF_DATA_BYTES} bytes`,
      { data: { field: "data" } },
    );
  }
  // The beginning of something may be all that was sent.
  return sniffMedia(bytes, Number.MAX_SAFE_INTEGER);
}

/** Stores media and tells where the model would get it; throws what would keep it from that (E-111). */
export async function deliverMedia(
  context: CallContext,
  params: ParamsOf<typeof MediaDeliver>,
  options: HostRequestsOptions,
): Promise<ResultInput<typeof MediaDeliver>> {
  const { context_id: contextId, artifact, scratch, filename } = params;
  const { artifacts } = options.services;
  const target = requireSession(context).media();
  let sha256: Digest;
  if (scratch === undefined) {
    sha256 = readableDigest(context, contextId, artifact ?? "", options);
  } else {
    const stored = await importScratch(
      artifacts,
      context.rootSessionId,
      options.scratch(),
      scratch,
    );
    sha256 = stored.sha256;
    options.grants.noteWritten(contextId, sha256);
  }
  const media = await inspectMedia(artifacts, context.rootSessionId, { sha256, filename });
  return {
    artifact: publicArtifactUri(sha256),
    mime: media.mime,
    bytes: media.byteLength,
    placement: gateMedia(target, media),
  };
}

function readableDigest(
  context: CallContext,
  contextId: ContextId,
  uri: string,
  options: HostRequestsOptions,
): Digest {
  const { digest, stream } = parseArtifactUri(uri);
  if (stream !== null) {
    throw new CookieError("artifact_uri", "media is a whole artifact, not a stream of one");
  }
  requireReadable(context, contextId, uri, options);
  return digest;
}
