import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { declareTool, openRoom } from "./dispatch-fixture.ts";

const SHELL = declareTool({
  name: "shell",
  concurrency: "parallel",
  prepare: { mode: "static", resources: [{ action: "bash", arg: "value", as: "command" }] },
});

/** A room whose calls ask, while they run, for the command that they are given behind the one they were allowed. */
function openAsking() {
  const room = openRoom([SHELL], {
    rules: [{ action: "bash", resource: "echo *", effect: "allow" }],
  });
  room.plugins.answer = async ({ call, signal }) => {
    const [, label = ""] = String(call.params.arguments["value"]).split(" # ");
    const resources = [{ action: "bash" as const, label }];
    return { content: JSON.stringify(await call.ask?.({ resources, reason: "more" }, signal)) };
  };
  const ask = async (...labels: string[]) => {
    const ends = await room.dispatch(
      labels.map((label) => ["shell", { value: `echo # ${label}` }] as const),
    );
    return ends.map(({ result }) => JSON.parse(result?.output ?? "null") as unknown);
  };
  return { room, ask };
}

test("[E-120] a command that is asked for is judged by its parts, as the tool's own is", async () => {
  const { ask } = openAsking();
  expect(await ask("echo one", "echo one && rm two")).toMatchObject([
    { granted: true, source: "policy" },
    { granted: false, source: "policy" },
  ]);
});

test("[E-120] questions of one session come one at a time, however many calls ask", async () => {
  const { room, ask } = openAsking();
  const decide = room.gate;
  let open = 0;
  let most = 0;
  room.gate = async (...args) => {
    open += 1;
    most = Math.max(most, open);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    open -= 1;
    return decide(...args);
  };
  const answers = await ask("echo one", "echo two", "echo three");
  expect(answers).toEqual(Array(3).fill({ granted: true, source: "policy" }));
  expect(most).toBe(1);
});
