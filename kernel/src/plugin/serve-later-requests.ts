import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import { requireInitialized } from "./serve-method.ts";

/** Requests that most plugins never make: what they need, their schemas included, is loaded when one comes. */
const NAMES = [
  "host/config/get",
  "host/delegation/cancel",
  "host/delegation/result",
  "host/delegation/start",
  "host/delegation/targets",
  "host/goals/get",
  "host/goals/update",
  "host/media/deliver",
  "host/media/sniff",
  "host/messages/send",
  "host/permission/ask",
  "host/session/info",
  "host/skills/commit",
  "host/skills/get",
  "host/skills/list",
];

/** Those that read or store whole files; the others are small, or wait for somebody. */
const BULKY: ReadonlySet<string> = new Set(["host/media/deliver", "host/media/sniff"]);

export function serveLaterRequests(rpc: Connection, options: HostRequestsOptions): void {
  const anything = z.unknown();
  for (const name of NAMES) {
    const method = { kind: "request", name, params: anything, result: anything } as const;
    const serve = async (raw: unknown, signal: AbortSignal) => {
      requireInitialized(options, name);
      const { answerRequest } = await import("./answer-request.ts");
      return answerRequest(name, raw, options, signal);
    };
    rpc.onRequest(method, serve, { bulky: BULKY.has(name) });
  }
}
