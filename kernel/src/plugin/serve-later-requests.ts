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

export function serveLaterRequests(rpc: Connection, options: HostRequestsOptions): void {
  const anything = z.unknown();
  for (const name of NAMES) {
    const method = { kind: "request", name, params: anything, result: anything } as const;
    rpc.onRequest(method, async (raw, signal) => {
      requireInitialized(options, name);
      const { answerRequest } = await import("./answer-request.ts");
      return answerRequest(name, raw, options, signal);
    });
  }
}
