import {
  ArtifactsRead,
  ArtifactsWrite,
  CookieError,
  type HostGrant,
  HostLog,
  type Method,
  type ParamsOf,
  type ResultInput,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import { parseArtifactUri } from "../artifact/artifact-uri.ts";
import { decodeBase64 } from "../support/decode-base64.ts";
import type { ContextGrants, ContextScope } from "./context-grants.ts";
import type { CallContext, HostServices } from "./host-services.ts";

const MAX_INLINE_BYTES = 1024 * 1024;

export interface HostRequestsOptions {
  readonly plugin: string;
  readonly tier: TrustTier;
  readonly grants: ContextGrants;
  readonly services: HostServices;
  /** False until `plugin/initialize` is answered (E-022). */
  initialized(): boolean;
  isGranted(service: HostGrant): boolean;
}

/**
 * Answers what a plugin asks of the kernel (section 8). In this order: initialized, granted, params, context (E-118).
 * To be called before the connection listens.
 */
export function serveHostRequests(rpc: Connection, options: HostRequestsOptions): void {
  const { plugin, services, grants } = options;
  rpc.onNotification(HostLog, (params) => services.log(plugin, params));
  serve(rpc, options, ArtifactsRead, "artifacts.read", "request", async (context, params) => {
    requireReadable(context, params, options);
    return services.readArtifact(context, params);
  });
  serve(rpc, options, ArtifactsWrite, "artifacts.write", "request", async (context, params) => {
    const stored = await services.writeArtifact(context, inlineBytes(params));
    grants.noteWritten(params.context_id, stored.sha256);
    return stored;
  });
}

/** A plugin reads what its own request wrote and, above untrusted, what was approved for the call (E-119). */
function requireReadable(
  { approvedLabels }: CallContext,
  { context_id: contextId, uri }: ParamsOf<typeof ArtifactsRead>,
  { tier, grants }: HostRequestsOptions,
): void {
  if (grants.hasWritten(contextId, parseArtifactUri(uri).digest)) return;
  if (tier !== "untrusted" && approvedLabels?.includes(uri) === true) return;
  throw new CookieError("permission_denied", "the artifact is not among what this call may read");
}

function inlineBytes({ text, data }: ParamsOf<typeof ArtifactsWrite>): Uint8Array {
  const bytes = text === undefined ? decodeBase64(data ?? "") : Buffer.from(text);
  if (bytes === undefined) {
    throw new CookieError("invalid_params", "host/artifacts/write: data: expected base64", {
      data: { field: "data" },
    });
  }
  if (bytes.byteLength <= MAX_INLINE_BYTES) return bytes;
  throw new CookieError("resource_limit", `an artifact may hold ${MAX_INLINE_BYTES} bytes inline`, {
    data: { limit: MAX_INLINE_BYTES },
  });
}

function serve<M extends Method>(
  rpc: Connection,
  options: HostRequestsOptions,
  method: M,
  service: HostGrant,
  scope: ContextScope,
  act: (context: CallContext, params: ParamsOf<M>) => Promise<ResultInput<M>>,
): void {
  // The connection would check the params first, and tell a plugin without the right about them.
  const unchecked = { ...method, params: z.unknown() };
  rpc.onRequest(unchecked, async (raw) => {
    if (!options.initialized()) {
      throw new CookieError("not_initialized", `answer plugin/initialize before ${method.name}`);
    }
    if (!options.isGranted(service)) {
      throw new CookieError("not_granted", `${method.name} needs the capability ${service}`, {
        data: { capability: service },
      });
    }
    const parsed = method.params.safeParse(raw);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      const field = issue?.path.join(".") || "params";
      throw new CookieError(
        "invalid_params",
        `invalid params of ${method.name}: ${field}: ${issue?.message ?? "invalid"}`,
        { data: { field } },
      );
    }
    const params = parsed.data as ParamsOf<M> & Pick<ParamsOf<typeof ArtifactsRead>, "context_id">;
    return act(options.grants.resolve(params.context_id, scope), params);
  });
}
