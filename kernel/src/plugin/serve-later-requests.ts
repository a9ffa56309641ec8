import { SERVICE_GRANTS } from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { LaterRequest } from "./answer-request.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import { notGranted, requireInitialized } from "./open-context.ts";

/**
 * Requests that most plugins never make: what they need, their schemas included, is loaded when one comes. Bulky are those
 * that read or store whole files; the others are small, or wait for somebody.
 */
const LATER: Readonly<Record<LaterRequest, { readonly bulky: boolean }>> = {
  "host/config/get": { bulky: false },
  "host/media/deliver": { bulky: true },
  "host/media/sniff": { bulky: true },
  "host/permission/ask": { bulky: false },
  "host/session/info": { bulky: false },
};

/** Answered where the connection is served. */
const SERVED: readonly string[] = ["host/artifacts/read", "host/artifacts/write"];

export function serveLaterRequests(rpc: Connection, options: HostRequestsOptions): void {
  for (const [name, { bulky }] of Object.entries(LATER)) {
    const serve = async (raw: unknown, signal: AbortSignal) => {
      requireInitialized(options, name);
      const { answerRequest } = await import("./answer-request.ts");
      return answerRequest(name as LaterRequest, raw, options, signal);
    };
    rpc.onRequest(unchecked(name), serve, { bulky });
  }
  // Those that this kernel does not offer yet: nobody is granted them.
  for (const [name, grant] of Object.entries(SERVICE_GRANTS)) {
    if (name in LATER || SERVED.includes(name)) continue;
    rpc.onRequest(unchecked(name), () => {
      requireInitialized(options, name);
      throw notGranted(name, grant);
    });
  }
}

/** The connection would check the params first, and load their schemas for it. */
function unchecked(name: string) {
  const anything = z.unknown();
  return { kind: "request", name, params: anything, result: anything } as const;
}
