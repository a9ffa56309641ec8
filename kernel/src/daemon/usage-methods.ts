import {
  AgentUsage,
  SessionTreeUsage,
  SessionUsage,
  UsageGlobal,
} from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerUsageMethods(route: Route, services: ClientServices): void {
  const { sessions, usageArchive: archive } = services;
  const report = async (
    query: Parameters<typeof import("../session/usage-report.ts").reportUsage>[1],
  ) => {
    const { reportUsage } = await import("../session/usage-report.ts");
    return reportUsage({ sessions, archive }, query);
  };
  route(SessionUsage, ({ session_id }) =>
    sessions.read(session_id, ({ usage }) => ({ session_id, usage: usage.rollup() })),
  );
  route(SessionTreeUsage, async ({ session_id }) => {
    const { treeUsage } = await import("../session/tree-usage.ts");
    return { session_id, ...(await treeUsage({ sessions, archive }, session_id)) };
  });
  route(AgentUsage, async ({ agent_id }) => {
    const { usage } = await report({ agent_id });
    return { agent_id, usage };
  });
  route(UsageGlobal, report);
}
