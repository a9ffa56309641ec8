import {
  ConfigGet,
  CookieError,
  type PermissionAsk,
  type ResultInput,
  type SessionInfo,
} from "@cookie-agent/sdk/protocol";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";
import {
  notGranted,
  type OpenedContext,
  parseParams,
  requireSession,
  unknownSession,
} from "./open-context.ts";

/** A section of the configuration; the one service that needs no context (E-121). */
export async function answerConfig(
  raw: unknown,
  options: HostRequestsOptions,
): Promise<ResultInput<typeof ConfigGet>> {
  const sections = options.kernelConfig();
  if (sections.length === 0) throw notGranted(ConfigGet.name, "kernel_config");
  const { section } = parseParams(ConfigGet, raw);
  if (!sections.includes(section)) throw notGranted(ConfigGet.name, `kernel_config ${section}`);
  const value = await options.services.configSection(section);
  if (value !== undefined) return { value };
  throw new CookieError("invalid_params", `the configuration has no section ${section}`, {
    data: { field: "section" },
  });
}

/** The model is told above untrusted only. */
export function answerInfo(
  context: CallContext,
  { tier }: HostRequestsOptions,
): ResultInput<typeof SessionInfo> {
  const { model, ...info } = requireSession(context).info();
  return tier === "untrusted" || model === undefined ? info : { ...info, model };
}

/** Waits for whoever decides while the call's clock stands still (E-107, E-120). */
export async function answerAsk(
  { context, params }: OpenedContext<typeof PermissionAsk>,
  { grants }: HostRequestsOptions,
  signal: AbortSignal,
): Promise<ResultInput<typeof PermissionAsk>> {
  const { ask } = context;
  if (ask === undefined) throw unknownSession();
  const { context_id: contextId, resources, reason } = params;
  const held = grants.hold(contextId);
  try {
    return await ask({ resources, reason }, AbortSignal.any([signal, held.signal]));
  } finally {
    held.release();
  }
}
