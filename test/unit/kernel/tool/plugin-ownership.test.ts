import { PluginStatus } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { tellOwnership } from "../../../../kernel/src/tool/plugin-ownership.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import { callOf, entryFor, eventually, never, openHost } from "../plugin/open-host.ts";
import { NO_SELECTION } from "./dispatch-fixture.ts";

test("[E-044] [E-071] [T-004] a status tells which names a plugin serves and which it lost to whom", async () => {
  const { host } = await openHost({ entries: [entryFor("echo"), entryFor("slow")] });
  const [echo, slow] = host.plugins();
  if (echo === undefined || slow === undefined) throw new Error("a fixture is missing");
  // The later plugin declares the tool of the earlier one too.
  const plugins = [echo, { ...slow, tools: [...slow.tools, ...echo.tools.slice(0, 1)] }];
  const table = buildSlotTable({ plugins, tools: NO_SELECTION });

  const running = host.call("slow", callOf("wait_ms", { ms: 100 }), never());
  await eventually(() => host.status()[1]?.in_flight === 1);
  const statuses = tellOwnership(host.status(), table);

  expect(statuses.map((status) => PluginStatus.parse(status))).toEqual([
    {
      plugin: "echo",
      state: "disconnected",
      reason: null,
      tools: ["describe_process", "fetch", "stage", "store"],
      tier: "untrusted",
      version: "1.0.0",
      source: "user",
      pid: null,
      activation: "tool",
      restarts: 0,
      in_flight: 0,
      dropped_events: 0,
      shadowed: [{ tool: "echo", by: "slow" }],
      diagnostics: ["the tool echo is shadowed by the plugin slow"],
    },
    expect.objectContaining({
      plugin: "slow",
      state: "connected",
      tools: ["echo", "wait_ms", "wait_one"],
      pid: expect.any(Number) as number,
      in_flight: 1,
      shadowed: [],
    }),
  ]);
  await running;
  expect(await host.call("echo", callOf("echo", { text: "still here" }), never())).toEqual({
    content: "still here",
  });
});
