import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  type PermissionAction,
  type PermissionEffect,
  type RuntimeSnapshot,
  RuntimeSnapshotGet,
  SessionCreate,
  SessionPermissionGet,
} from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/flags";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { selectRun } from "../../headless/select-run.ts";
import { renderTable } from "../../render-table.ts";
import { print, printJson } from "../../standard-streams.ts";

/** Stands in for the question "what may this agent do" where no model is configured yet. */
const OFFLINE_MODEL = "offline/script";

export const listTools = defineCommand({
  summary: "List the tools of the active profile, who serves them, and what the agent may do.",
  description:
    "EFFECT is what the agent's rules say for the action as a whole; single resources can have rules of their own.",
  args: {},
  flags: {
    agent: string({ char: "a", description: "agent whose rules count" }),
    ...attachFlags,
  },
  async run({ flags }) {
    const tools = await withClient(flags, async (client) => {
      const { snapshot } = await client.request(RuntimeSnapshotGet, {});
      const effects = await readEffects(client, snapshot, flags.agent);
      return snapshot.tools.map((tool) => ({
        ...tool,
        effect: effects.get(tool.action) ?? "deny",
      }));
    });
    if (flags.json) {
      printJson({ tools });
      return undefined;
    }
    const header = ["TOOL", "PLUGIN", "TIER", "ACTION", "EFFECT", "CONCURRENCY", "SHADOWS"];
    const rows = tools.map((tool) => [
      tool.name,
      tool.plugin,
      tool.tier,
      tool.action,
      tool.effect,
      tool.concurrency,
      tool.shadowed.join(", "),
    ]);
    print(renderTable(header, rows));
    return undefined;
  },
});

/** Asked of a session that never reaches the disk. */
async function readEffects(
  client: CookieClient,
  snapshot: RuntimeSnapshot,
  agent: string | undefined,
): Promise<Map<PermissionAction, PermissionEffect>> {
  const model = snapshot.default_agent === null ? OFFLINE_MODEL : undefined;
  const selection = selectRun(snapshot, { agent, model }, null);
  const { session } = await client.request(SessionCreate, { selection });
  const { permissions } = await client.request(SessionPermissionGet, {
    session_id: session.session_id,
  });
  return new Map(permissions.map(({ action, effect }) => [action, effect]));
}
