import {
  ArtifactsRead,
  ArtifactsWrite,
  CookieError,
  HostLog,
  MAX_INLINE_ARTIFACT_BYTES,
  type Method,
  type ParamsOf,
  type ResultInput,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import { decodeBase64 } from "../support/decode-base64.ts";
import { requireReadable } from "./artifact-rights.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";
import { type OpenedContext, openContext, requireInitialized } from "./open-context.ts";
import { serveLaterRequests } from "./serve-later-requests.ts";

/**
 * Answers what a plugin asks of the kernel (section 8). In this order: initialized, granted, params, context (E-118).
 * To be called before the connection listens.
 */
export function serveHostRequests(rpc: Connection, options: HostRequestsOptions): void {
  const { plugin, services, grants } = options;
  rpc.onNotification(HostLog, (params) => services.log(plugin, params));
  serveContents(rpc, options, ArtifactsRead, async ({ context, params }) => {
    requireReadable(context, params.context_id, params.uri, options);
    return services.readArtifact(context, params);
  });
  serveContents(rpc, options, ArtifactsWrite, async ({ context, params }) => {
    const stored = await storeContent(context, params, options);
    grants.noteWritten(params.context_id, stored.sha256);
    return stored;
  });
  serveLaterRequests(rpc, options);
}

/** Serves one method that moves artifacts. */
function serveContents<M extends Method>(
  rpc: Connection,
  options: HostRequestsOptions,
  method: M,
  act: (opened: OpenedContext<M>) => Promise<ResultInput<M>>,
): void {
  // The connection would check the params first, and tell a plugin without the right about them.
  const unchecked = {
    kind: "request",
    name: method.name,
    params: z.unknown(),
    get result() {
      return method.result;
    },
  } as const;
  const serve = async (raw: unknown) => {
    requireInitialized(options, method.name);
    return act(openContext(raw, options, method, "request"));
  };
  rpc.onRequest(unchecked, serve, { bulky: true });
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
