import { CookieError } from "../protocol/errors.ts";
import type { ParamsOf } from "../protocol/method.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { ServiceCall } from "../protocol/service-call.ts";
import type { HostClient } from "./host-client.ts";

/** One request of a client's to a service (E-122). */
export interface ServiceInvocation {
  /** As the client sent them; they may hold secrets. */
  readonly params: JsonObject;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** For the session that the params name; null when they name none. */
  readonly host: HostClient | null;
}

/** A named kernel service: by method, what answers it. A thrown `ToolError` reaches the client with its code. */
export type ServiceHandlers = Readonly<
  Record<string, (invocation: ServiceInvocation) => JsonObject | Promise<JsonObject>>
>;

/** Answers a service call; what is not provided is `method_not_found`. */
export async function callService(
  services: Readonly<Record<string, ServiceHandlers>>,
  { service, method, params }: ParamsOf<typeof ServiceCall>,
  signal: AbortSignal,
  host: HostClient | null,
): Promise<JsonObject> {
  const handlers = Object.hasOwn(services, service) ? services[service] : undefined;
  const handler =
    handlers !== undefined && Object.hasOwn(handlers, method) ? handlers[method] : undefined;
  if (handler === undefined) {
    throw new CookieError("method_not_found", `the service ${service} has no method ${method}`);
  }
  return handler({ params, signal, host });
}
