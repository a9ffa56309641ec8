import { ApprovalList, ApprovalRespond } from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerApprovalMethods(route: Route, { sessions }: ClientServices): void {
  route(ApprovalList, async ({ root_session_id, status }) => ({
    approvals: await sessions.read(root_session_id, (actor) => actor.approvals(status)),
  }));
  route(ApprovalRespond, async (params) => {
    const actor = await sessions.adopt(params.session_id);
    const approval = await actor.respond(params);
    return { client_response_id: params.client_response_id, approval };
  });
}
