import {
  SessionCompact,
  SessionCreate,
  SessionGet,
  SessionList,
  SessionPermissionClear,
  SessionPermissionExplain,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionResume,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";
import { selectSessions } from "./select-sessions.ts";

export function registerSessionMethods(route: Route, { sessions }: ClientServices): void {
  route(SessionCreate, async ({ selection }) => {
    const actor = await sessions.create(selection);
    return { session: { ...actor.meta(), access: "owned" as const } };
  });
  route(
    SessionList,
    async ({ everywhere = false, ...filter }) => {
      const { sessions: all, diagnostics } = await sessions.list(everywhere);
      return { ...selectSessions(all, filter), diagnostics };
    },
    { bulky: true },
  );
  route(SessionGet, ({ session_id }) =>
    sessions.read(session_id, async (actor) => {
      const access = actor.writable
        ? ("owned" as const)
        : await sessions.access(actor.rootSessionId);
      return { session: { ...actor.meta(), access } };
    }),
  );
  route(SessionResume, async ({ session_id }) => {
    const actor = await sessions.adopt(session_id);
    return {
      session: { ...actor.meta(), access: "owned" as const },
      selection: actor.nextSelection(),
    };
  });
  route(SessionCompact, async ({ session_id, focus }, signal) => {
    const actor = await sessions.adopt(session_id);
    return actor.compact(focus ?? null, signal);
  });
  route(SessionSetPermissionMode, async ({ session_id, mode }) => {
    const actor = await sessions.adopt(session_id);
    actor.setMode(mode);
    return {};
  });
  route(SessionPermissionGet, ({ session_id }) =>
    sessions.read(session_id, (actor) => ({
      permissions: actor.permissions(),
      current_mode: actor.mode,
    })),
  );
  route(SessionPermissionSet, async ({ session_id, action, resource, effect, source }) => {
    const actor = await sessions.adopt(session_id);
    await actor.setOverlayRule({ action, resource, effect, source: source ?? "user" });
    return { permissions: actor.permissions() };
  });
  route(SessionPermissionExplain, (params) =>
    sessions.read(params.session_id, async (actor) => ({
      explanation: await actor.explain(params),
    })),
  );
  route(SessionPermissionClear, async ({ session_id, action, resource }) => {
    const actor = await sessions.adopt(session_id);
    await actor.clearOverlayRule({ action, resource });
    return { permissions: actor.permissions() };
  });
}
