import { SessionFork, SessionRename, SessionRevert } from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerBranchMethods(route: Route, { sessions }: ClientServices): void {
  route(SessionRename, async ({ session_id, client_rename_id, change }) => {
    const actor = await sessions.adopt(session_id);
    await actor.rename({ clientRenameId: client_rename_id, change });
    return { client_rename_id, session: actor.meta() };
  });
  route(SessionRevert, async ({ session_id, through_seq }) => {
    const actor = await sessions.adopt(session_id);
    const instructions = await actor.revert(through_seq);
    return {
      session: { ...actor.meta(), access: "owned" as const },
      ...(instructions !== null && { instructions_override: instructions }),
    };
  });
  route(SessionFork, async ({ session_id, through_seq }) => ({
    session_id: await sessions.fork(session_id, through_seq),
  }));
}
