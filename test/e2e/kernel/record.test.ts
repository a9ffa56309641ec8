import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type EventPayload, RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Ids of other parties: of the provider and its model, and the keys that clients make; and handles. */
const FOREIGN = [
  "adapter_id",
  "agent_id",
  "client_run_id",
  "id",
  "model_call_id",
  "model_id",
  "provider_item_id",
  "short_id",
  "wire_model_id",
];

test("[S-007] every id that the record makes up is a UUID of version 7", async () => {
  const kernel = await openTestKernel({
    agents: { primary: agentDocument({ bash: "ask" }) },
    config: "[session_title]\nmax_chars = 20\n",
    answers: [{ calls: [bash("echo hi")] }, { text: "done" }],
  });
  const { watch } = await kernel.run("Hi", { mode: "auto_approve_y" });
  const seen = new Map<string, string>();
  const collect = (value: unknown, key = ""): void => {
    if (typeof value === "string") {
      if (/(?:^|_)id$/.test(key) && !FOREIGN.includes(key)) seen.set(key, value);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) collect(member, name);
    }
  };
  for (const event of watch.events) collect(event);
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining(["session_id", "run_id", "attempt_id", "tool_call_id", "approval_id"]),
  );
  expect([...seen].filter(([, id]) => !UUID_V7.test(id))).toEqual([]);
});

test.skipIf(process.platform === "win32")(
  "[S-252] state lies where the layout says, for its owner alone",
  async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [{ calls: [{ name: "echo", arguments: { text: "hi" } }] }, { text: "done" }],
    });
    await kernel.run("Hi");
    const { stateDir } = kernel.project;
    for (const name of ["plugins/echo/data", `run/${process.pid}/scratch`, "logs", "sessions"]) {
      const found = await stat(join(stateDir, name));
      expect([name, found.isDirectory(), (found.mode & 0o077).toString(8)]).toEqual([
        name,
        true,
        "0",
      ]);
    }
    await kernel.close();
    expect(await readdir(join(stateDir, "run"))).toEqual([]);
  },
);

test("[T-026] the shipped tools have the concurrency of their table", async () => {
  const { client } = await openTestKernel();
  const { snapshot } = await client.request(RuntimeSnapshotGet, {});
  expect(snapshot.tools.map(({ name, concurrency }) => [name, concurrency])).toEqual([
    ["bash", "parallel"],
    ["edit", "parallel"],
    ["read", "parallel"],
    ["write", "parallel"],
  ]);
});

describe("limits of what the model is shown", () => {
  test("[T-046] hold for bash and not for read", async () => {
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`).join("\n");
    const kernel = await openTestKernel({
      config: "[tool_output]\nmax_lines = 3\n",
      answers: [
        { calls: [bash("cat a.txt"), { name: "read", arguments: { filePath: "a.txt" } }] },
        { text: "done" },
      ],
      prepare: (project) => project.write("a.txt", `${lines}\n`),
    });
    const { watch } = await kernel.run("Show it");
    const ends = watch.payloads("tool_call_terminated");
    const shown = (name: string) => outputOf(ends, watch.payloads("tool_call_started"), name);
    expect(shown("bash")).not.toContain("line 20\n");
    expect(shown("read")).toContain("line 20\n");
    expect(shown("read")).toContain("line 39");
  });
});

function outputOf(
  ends: readonly Extract<EventPayload, { type: "tool_call_terminated" }>[],
  starts: readonly Extract<EventPayload, { type: "tool_call_started" }>[],
  tool: string,
): string {
  const call = starts.find((start) => start.tool === tool);
  const end = ends.find(({ tool_call_id }) => tool_call_id === call?.tool_call_id);
  return end?.result?.output ?? "";
}
