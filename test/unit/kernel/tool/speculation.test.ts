import { describe, expect, test } from "vitest";
import { Speculation } from "../../../../kernel/src/tool/speculation.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import {
  declareDynamic,
  NO_SELECTION,
  openRoom,
  preparedAs,
  RUN,
  SESSION,
  toolCall,
} from "./dispatch-fixture.ts";

function speculate() {
  const room = openRoom([declareDynamic("edit")]);
  room.plugins.prepared = ({ arguments: { value } }) => Promise.resolve(preparedAs(String(value)));
  const table = buildSlotTable({ plugins: room.plugins.facts, tools: NO_SELECTION });
  const speculation = new Speculation({
    toolSet: table.freeze({ policy: room.policy, toolCalling: true }),
    context: {
      sessionId: SESSION,
      rootSessionId: SESSION,
      runId: RUN,
      cwd: room.policy.workspaceRoot,
      workspaceRoot: room.policy.workspaceRoot,
    },
    stages: room.stages,
  });
  return { room, speculation };
}

describe("speculation while a turn streams", () => {
  test("[E-057] a named tool's plugin is warmed, an unknown name starts nothing", () => {
    const { room, speculation } = speculate();
    speculation.toolNamed("edit");
    speculation.toolNamed("nothing");
    expect(room.trace).toEqual(["warm builtin.test"]);
  });

  test("[E-084] a call prepared early is not prepared again and keeps its id", async () => {
    const { room, speculation } = speculate();
    const part = toolCall("edit", { value: "a" });
    speculation.argumentsComplete(part);
    const [outcome] = await room.dispatch([], { calls: [{ part, contentIndex: 0 }], speculation });
    expect(room.plugins.prepares.map(({ invocation_id }) => invocation_id)).toEqual([
      outcome?.toolCallId,
    ]);
    expect(room.plugins.calls[0]?.params.prepared).toBe("token a");
  });

  test("[E-084] what nobody took is given back", async () => {
    const { room, speculation } = speculate();
    speculation.argumentsComplete(toolCall("edit", { value: "unused" }));
    await expect.poll(() => room.plugins.prepares.length).toBe(1);
    speculation.discard();
    await expect.poll(() => room.plugins.discarded).toEqual(["token unused"]);
  });
});
