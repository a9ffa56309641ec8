import { ToolClaim } from "../../protocol/dynamic-tools.ts";
import { DYNAMIC_TOOL_LIMITS } from "../../protocol/limits.ts";
import { excerpt, tellAnswer } from "../answer.ts";
import type { Bench, Started } from "./bench.ts";
import type { Check } from "./check.ts";
import { requireDeclaration } from "./require-shape.ts";
import { fail, skip } from "./verdict.ts";

export const checkDynamicTools: Check = {
  id: "C-20",
  title: "dynamic tools: complete lists of valid declarations, claims that resolve",
  ids: ["E-130", "E-131", "E-133"],
  async run(bench) {
    if (bench.options.subject.manifest?.capabilities?.dynamic_tools !== true) {
      skip("the plugin does not declare dynamic_tools");
    }
    const started = await bench.start(await bench.folder());
    const { driver } = started.peer;
    const lists = () => driver.frames.filter(({ method }) => method === "host/tools/list_changed");
    await driver.until(() => lists().length > 0, bench.limits.answerMs);
    const [list] = lists();
    if (list === undefined) skip("it sent no list");
    if (!list.isRequest) {
      fail("sent host/tools/list_changed as a notification", "send it as a request");
    }
    const { tools, claims = [] } = list.params;
    if (!Array.isArray(tools) || tools.length > DYNAMIC_TOOL_LIMITS.tools) {
      fail(
        `sent no list of at most ${DYNAMIC_TOOL_LIMITS.tools} tools`,
        "send its complete list as `tools`",
      );
    }
    for (const tool of tools as unknown[]) requireDeclaration(tool);
    if (!Array.isArray(claims)) fail("sent claims that are no list", "send a list of prefixes");
    for (const claim of claims as unknown[]) await resolves(bench, started, claim);
  },
};

async function resolves(bench: Bench, { peer }: Started, claim: unknown): Promise<void> {
  if (typeof claim !== "string" || !ToolClaim.safeParse(claim).success) {
    fail(`claims ${excerpt(String(claim))}`, "claim prefixes that end in *");
  }
  const name = `${claim.slice(0, -1)}x`;
  const { answerMs } = bench.limits;
  const answer = await peer.driver.request("plugin/tools/resolve", { name }, answerMs);
  const tool = answer.kind === "result" ? answer.result["tool"] : undefined;
  if (tool === null) return;
  if (tool === undefined) {
    fail(
      tellAnswer("plugin/tools/resolve", answer),
      'answer {"tool": declaration} or {"tool": null}',
    );
  }
  requireDeclaration(tool);
}
