import {
  type ContextId,
  CookieError,
  type Digest,
  MediaDeliver,
  MediaSniff,
  type ParamsOf,
  type ResultInput,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { parseArtifactUri, publicArtifactUri } from "../artifact/artifact-uri.ts";
import { decodeBase64 } from "../support/decode-base64.ts";
import { requireReadable } from "./artifact-rights.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";
import { requireSession, serveMethod } from "./serve-method.ts";

const MAX_SNIFF_DATA_BYTES = 64 * 1024;

/** What some content is, and whether the model would get it (E-111). What looks at media is loaded when it is asked. */
export function serveMediaRequests(rpc: Connection, options: HostRequestsOptions): void {
  serveMethod(rpc, options, MediaSniff, "media", "request", async (context, params) => {
    const type = await sniff(context, params, options);
    return type === undefined ? { mime: null } : type;
  });
  serveMethod(rpc, options, MediaDeliver, "media", "call", (context, params) =>
    deliver(context, params, options),
  );
}

async function sniff(
  context: CallContext,
  { context_id: contextId, artifact, scratch, data }: ParamsOf<typeof MediaSniff>,
  options: HostRequestsOptions,
) {
  const { sniffArtifact } = await import("../artifact/inspect-media.ts");
  const { SNIFF_BYTES, sniffMedia } = await import("../artifact/sniff-media.ts");
  if (artifact !== undefined) {
    const { artifacts } = options.services;
    const sha256 = readableDigest(context, contextId, artifact, options);
    return sniffArtifact(artifacts, context.rootSessionId, { sha256 });
  }
  if (scratch !== undefined) {
    const { readScratchHead } = await import("../artifact/import-scratch.ts");
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

async function deliver(
  context: CallContext,
  params: ParamsOf<typeof MediaDeliver>,
  options: HostRequestsOptions,
): Promise<ResultInput<typeof MediaDeliver>> {
  const { context_id: contextId, artifact, scratch, filename } = params;
  const { artifacts } = options.services;
  const target = requireSession(context).media();
  const { inspectMedia } = await import("../artifact/inspect-media.ts");
  const { gateMedia } = await import("../artifact/gate-media.ts");
  let sha256: Digest;
  if (scratch === undefined) {
    sha256 = readableDigest(context, contextId, artifact ?? "", options);
  } else {
    const { importScratch } = await import("../artifact/import-scratch.ts");
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
