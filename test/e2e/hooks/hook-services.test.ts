import { expect, test } from "vitest";
import { delivered, type HookTools, writeHookPlugins } from "../../support/hook-plugin.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";

test("[E-118] a hook that is asked during a run gets the services of scope request, for its session", async () => {
  const manifest = {
    capabilities: {
      intercept: ["tool_before_call"],
      host: ["session.info", "media"],
    },
  };
  const look = async (_: object, { plugin, params }: HookTools) => {
    const { context_id } = params;
    const info = await plugin.ask("host/session/info", { context_id });
    const deliver = { context_id, scratch: "none" };
    const refused = await plugin
      .ask("host/media/deliver", deliver)
      .catch((error: { code: string }) => error.code);
    return { action: "block", reason: `${String(info["session_id"])} ${String(refused)}` };
  };
  const kernel = await openTestKernel({
    answers: [{ calls: [{ name: "bash", arguments: { command: "true" } }] }, { text: "done" }],
    prepare: (project) =>
      writeHookPlugins(project, [{ name: "look", hooks: { tool_before_call: look }, manifest }]),
  });
  const { watch, sessionId } = await kernel.run("Hi");
  expect(await delivered(kernel.project)).toHaveLength(1);
  expect(watch.payloads("tool_call_terminated")[0]?.error?.message).toContain(
    `${sessionId} context_invalid`,
  );
});
