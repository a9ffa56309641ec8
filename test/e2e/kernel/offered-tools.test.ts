import type { AvailabilityPredicate } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { pick } from "../../support/model-server.ts";
import {
  agentDocument,
  openTestKernel,
  type TestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";
import { storeChild } from "../../support/stored-child.ts";
import type { TempProject } from "../../support/temp-project.ts";

const PREDICATES: readonly AvailabilityPredicate[] = [
  "goal_open",
  "delegation_open",
  "messaging_enabled",
  "skills_usable",
];
const RULES = { plugin: "allow", delegate: { explore: "allow" } };

/** A plugin with one tool for each predicate, which nobody has to start. */
async function gatedPlugin(project: TempProject): Promise<void> {
  const tools = PREDICATES.map((predicate) => ({
    name: predicate,
    description: "Offered when it holds.",
    permission_name: predicate,
    parameters: { type: "object", properties: {}, additionalProperties: false },
    available_when: [predicate],
  }));
  const manifest = {
    manifest: 1,
    name: "gated",
    version: "1.0.0",
    protocol: ["0.1.0"],
    runtime: { kind: "exec", command: "/bin/cat" },
    tools,
  };
  await project.writeState("gated/cookie-plugin.json", JSON.stringify(manifest));
}

function openGated(options: TestKernelOptions = {}): Promise<TestKernel> {
  const { config = "" } = options;
  return openTestKernel({
    agents: { primary: agentDocument(RULES) },
    answers: [{ text: "ok" }],
    prepare: gatedPlugin,
    ...options,
    config: `[plugins.gated]\npath = "gated"\n${config}`,
  });
}

/** Of those that a predicate decides about, what the model was told of in its newest request. */
function offered({ server }: TestKernel): unknown[] {
  const tools = pick(server.requests.at(-1)?.body, "tools");
  const names = (Array.isArray(tools) ? tools : []).map((tool) => pick(tool, "function", "name"));
  return names.filter((name) => PREDICATES.some((predicate) => predicate === name));
}

test("[E-037] a tool is offered where every predicate of its declaration holds", async () => {
  const kernel = await openGated();
  await kernel.run("Hi");
  expect(offered(kernel)).toEqual(["delegation_open", "messaging_enabled"]);
});

test("[E-037] no messages, no tool that sends them", async () => {
  const kernel = await openGated({ config: "[messaging]\nenabled = false\n" });
  await kernel.run("Hi");
  expect(offered(kernel)).toEqual(["delegation_open"]);
});

test("[E-037] [S-160] an agent without a target that it may delegate to gets no tool that delegates", async () => {
  const denied = { plugin: "allow", delegate: { explore: "deny" } };
  const kernel = await openGated({ agents: { primary: agentDocument(denied) } });
  await kernel.run("Hi");
  expect(offered(kernel)).toEqual(["messaging_enabled"]);
});

test("[E-037] [S-160] a session at the depth ceiling gets no tool that delegates", async () => {
  const config = "[delegation]\nmax_depth = 1\n";
  const first = await openGated({ config });
  const { sessionId } = await first.run("Hi");
  expect(offered(first)).toContain("delegation_open");
  await first.close();
  const child = await storeChild(first.project, sessionId);
  const second = await openTestKernel({ on: first, answers: [{ text: "ok" }] });
  await second.run("Go on", { session: child.sessionId });
  expect(offered(second)).toEqual(["messaging_enabled"]);
});
