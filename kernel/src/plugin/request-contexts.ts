import type { CallContext } from "./host-services.ts";
import type { PluginCall, PrepareParams } from "./plugin-call.ts";
import type { ServiceRequest } from "./service-request.ts";

/** For whom a plugin prepares a call. */
export function prepareContext(plugin: string, params: PrepareParams): CallContext {
  const { session_id: sessionId, rootSessionId = sessionId, session } = params;
  return {
    plugin,
    sessionId,
    rootSessionId,
    runId: params.run_id,
    toolCallId: params.invocation_id,
    ...(session && { session }),
  };
}

/** For whom a plugin runs a call; questions are given up once `signal` aborts. */
export function callContext(plugin: string, call: PluginCall, signal: AbortSignal): CallContext {
  const { params, rootSessionId, approvedLabels, session, ask } = call;
  return {
    plugin,
    sessionId: params.session_id,
    rootSessionId,
    runId: params.run_id,
    toolCallId: params.invocation_id,
    ...(session && { session }),
    ...(approvedLabels && { approvedLabels }),
    ...(ask && { ask: (question, ended) => ask(question, AbortSignal.any([ended, signal])) }),
    written: new Set(),
  };
}

/** For whom a plugin answers a client that asks a service of it. */
export function serviceContext(
  plugin: string,
  { sessionId, rootSessionId, rights }: NonNullable<ServiceRequest["session"]>,
): CallContext {
  return {
    plugin,
    sessionId,
    rootSessionId,
    runId: null,
    toolCallId: null,
    ...(rights && { session: rights }),
  };
}
