import {
  ApprovalList,
  ApprovalRespond,
  CookieError,
  isCookieError,
} from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerApprovalMethods(route: Route, { sessions }: ClientServices): void {
  route(ApprovalList, async ({ root_session_id, status }) => ({
    approvals: await sessions.read(root_session_id, (actor) => actor.approvals(status)),
  }));
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
