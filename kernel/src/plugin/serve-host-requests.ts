import {
  ArtifactsRead,
  ArtifactsWrite,
  CookieError,
  HostLog,
  MAX_INLINE_ARTIFACT_BYTES,
  type ParamsOf,
  type ResultInput,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { decodeBase64 } from "../support/decode-base64.ts";
import { requireReadable } from "./artifact-rights.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";
import { serveLaterRequests } from "./serve-later-requests.ts";
import { serveMethod } from "./serve-method.ts";

/**
 * Answers what a plugin asks of the kernel (section 8). In this order: initialized, granted, params, context (E-118).
 * To be called before the connection listens.
 */
export function serveHostRequests(rpc: Connection, options: HostRequestsOptions): void {
  const { plugin, services, grants } = options;
  rpc.onNotification(HostLog, (params) => services.log(plugin, params));
  serveMethod(rpc, options, ArtifactsRead, "artifacts.read", "request", async (context, params) => {
    requireReadable(context, params.context_id, params.uri, options);
    return services.readArtifact(context, params);
  });
  serveMethod(
    rpc,
    options,
    ArtifactsWrite,
    "artifacts.write",
    "request",
    async (context, params) => {
      const stored = await storeContent(context, params, options);
      grants.noteWritten(params.context_id, stored.sha256);
      return stored;
    },
  );
  serveLaterRequests(rpc, options);
}

async function storeContent(
  context: CallContext,
  { text, data, scratch }: ParamsOf<typeof ArtifactsWrite>,
  { services, scratch: directory }: HostRequestsOptions,
): Promise<ResultInput<typeof ArtifactsWrite>> {
  if (scratch !== undefined) {
    const { storeScratch } = await import("./store-scratch.ts");
    return storeScratch(services.artifacts, context.rootSessionId, directory(), scratch);
  }
  const bytes = text === undefined ? decodeBase64(data ?? "") : Buffer.from(text);
  if (bytes === undefined) {
    throw new CookieError("invalid_params", "host/artifacts/write: data: expected base64", {
      data: { field: "data" },
    });
  }
  if (bytes.byteLength <= MAX_INLINE_ARTIFACT_BYTES) {
    return services.writeArtifact(context, bytes);
  }
  throw new CookieError(
    "resource_limit",
    `an artifact may hold ${MAX_INLINE_ARTIFACT_BYTES} bytes inline; write a scratch file instead`,
    { data: { limit: MAX_INLINE_ARTIFACT_BYTES } },
  );
}
