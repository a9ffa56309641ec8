import {
  ArtifactsRead,
  ArtifactsWrite,
  CookieError,
  type HostGrant,
  HostLog,
  type Method,
  type ParamsOf,
  type ResultInput,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { ContextGrants, ContextScope } from "./context-grants.ts";
import type { CallContext, HostServices } from "./host-services.ts";

const MAX_INLINE_BYTES = 1024 * 1024;

export interface HostRequestsOptions {
  readonly plugin: string;
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
  const { plugin, services } = options;
  rpc.onNotification(HostLog, (params) => services.log(plugin, params));
  serve(rpc, options, ArtifactsRead, "artifacts.read", "request", (context, params) =>
    services.readArtifact(context, params),
  );
  serve(rpc, options, ArtifactsWrite, "artifacts.write", "request", (context, params) =>
    services.writeArtifact(context, inlineBytes(params)),
  );
}

function inlineBytes({ text, data }: ParamsOf<typeof ArtifactsWrite>): Uint8Array {
  const bytes = text === undefined ? decodeBase64(data ?? "") : Buffer.from(text);
  if (bytes.byteLength <= MAX_INLINE_BYTES) return bytes;
  throw new CookieError("resource_limit", `an artifact may hold ${MAX_INLINE_BYTES} bytes inline`, {
    data: { limit: MAX_INLINE_BYTES },
  });
}

function decodeBase64(data: string): Uint8Array {
  if (data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data)) {
    return Buffer.from(data, "base64");
  }
  throw new CookieError("invalid_params", "host/artifacts/write: data: expected base64", {
    data: { field: "data" },
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
