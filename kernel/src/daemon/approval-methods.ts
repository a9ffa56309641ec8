import {
  ApprovalList,
  ApprovalRespond,
  CookieError,
  isCookieError,
} from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerApprovalMethods(route: Route, { sessions }: ClientServices): void {
  route(ApprovalList, ({ root_session_id, status }) =>
    sessions.read(root_session_id, async (actor) => {
      const { treeGrants } = actor;
      const others = sessions.othersOfTree(actor);
      return {
        approvals: [actor, ...others].flatMap((one) => one.approvals(status)),
        tree_grants: (await treeGrants.ready()) ? treeGrants.live() : [],
      };
    }),
  );
  route(ApprovalRespond, async (params) => {
    const actor = await sessions.adopt(params.session_id);
    const { session_id, approval_id, client_response_id } = params;
    try {
      return { client_response_id, approval: await actor.respond(params) };
    } catch (error) {
      if (!isCookieError(error)) throw error;
      const data = { ...error.data, session_id, approval_id, client_response_id };
      throw new CookieError(error.code, error.message, { data, cause: error });
    }
  });
}
