import {
  ConfigGet,
  CookieError,
  DelegationCancel,
  DelegationResult,
  DelegationStart,
  DelegationTargets,
  GoalsGet,
  GoalsUpdate,
  type HostGrant,
  MessagesSend,
  type Method,
  PermissionAsk,
  SessionInfo,
  SkillsCommit,
  SkillsGet,
  SkillsList,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import {
  notGranted,
  parseParams,
  requireInitialized,
  requireSession,
  serveMethod,
  unknownSession,
} from "./serve-method.ts";

/** Services that this kernel does not offer yet: nobody is granted them. */
const UNSERVED: readonly (readonly [Method, HostGrant])[] = [
  [DelegationStart, "delegation"],
  [DelegationResult, "delegation"],
  [DelegationCancel, "delegation"],
  [DelegationTargets, "delegation"],
  [MessagesSend, "messaging"],
  [GoalsGet, "goals"],
  [GoalsUpdate, "goals"],
  [SkillsList, "skills.read"],
  [SkillsGet, "skills.read"],
  [SkillsCommit, "skills.commit"],
];

/** Configuration, facts about the session, and questions to whoever may permit (E-120, E-121). */
export function serveSessionRequests(rpc: Connection, options: HostRequestsOptions): void {
  serveConfig(rpc, options);
  serveMethod(rpc, options, SessionInfo, "session.info", "request", async (context) => {
    const { model, ...info } = requireSession(context).info();
    return options.tier === "untrusted" || model === undefined ? info : { ...info, model };
  });
  serveMethod(
    rpc,
    options,
    PermissionAsk,
    "permission.ask",
    "call",
    async ({ ask }, { context_id: contextId, resources, reason }, signal) => {
      if (ask === undefined) throw unknownSession();
      const held = options.grants.hold(contextId);
      try {
        return await ask({ resources, reason }, AbortSignal.any([signal, held.signal]));
      } finally {
        held.release();
      }
    },
  );
  for (const [method, service] of UNSERVED) {
    rpc.onRequest({ ...method, params: z.unknown() }, () => {
      requireInitialized(options, method);
      throw notGranted(method, service);
    });
  }
}

/** The one service that needs no context. */
function serveConfig(rpc: Connection, options: HostRequestsOptions): void {
  rpc.onRequest({ ...ConfigGet, params: z.unknown() }, async (raw) => {
    requireInitialized(options, ConfigGet);
    const sections = options.kernelConfig();
    if (sections.length === 0) throw notGranted(ConfigGet, "kernel_config");
    const { section } = parseParams(ConfigGet, raw);
    if (!sections.includes(section)) throw notGranted(ConfigGet, `kernel_config ${section}`);
    const value = await options.services.configSection(section);
    if (value !== undefined) return { value };
    throw new CookieError("invalid_params", `the configuration has no section ${section}`, {
      data: { field: "section" },
    });
  });
}
