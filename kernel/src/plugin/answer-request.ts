import {
  ConfigGet,
  CookieError,
  MediaDeliver,
  MediaSniff,
  type Method,
  PermissionAsk,
  SessionInfo,
} from "@cookie-agent/sdk/protocol";
import { deliverMedia, sniffContent } from "./answer-media.ts";
import { answerAsk, answerConfig, answerInfo } from "./answer-session.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import { openContext } from "./open-context.ts";

/** The requests that are answered here. */
export type LaterRequest =
  | "host/config/get"
  | "host/media/deliver"
  | "host/media/sniff"
  | "host/permission/ask"
  | "host/session/info";

/** Answers one request of an initialized plugin: granted, params, context, in this order (E-118). */
export async function answerRequest(
  name: LaterRequest,
  raw: unknown,
  options: HostRequestsOptions,
  signal: AbortSignal,
): Promise<unknown> {
  switch (name) {
    case "host/config/get":
      return checked(ConfigGet, await answerConfig(raw, options));
    case "host/session/info": {
      const { context } = openContext(raw, options, SessionInfo, "request");
      return checked(SessionInfo, answerInfo(context, options));
    }
    case "host/permission/ask": {
      const opened = openContext(raw, options, PermissionAsk, "call");
      return checked(PermissionAsk, await answerAsk(opened, options, signal));
    }
    case "host/media/sniff": {
      const { context, params } = openContext(raw, options, MediaSniff, "request");
      return checked(MediaSniff, await sniffContent(context, params, options));
    }
    case "host/media/deliver": {
      const { context, params } = openContext(raw, options, MediaDeliver, "call");
      return checked(MediaDeliver, await deliverMedia(context, params, options));
    }
  }
}

/** What leaves has the form that the protocol promises. */
function checked(method: Method, result: unknown): unknown {
  const parsed = method.result.safeParse(result);
  if (parsed.success) return parsed.data;
  throw new CookieError("internal", `the result of ${method.name} is invalid`);
}
