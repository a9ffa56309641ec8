import { expect, test } from "vitest";
import { boundedModel, isSummaryRequest, messagesOf } from "../../support/bounded-model.ts";
import { pick, type RecordedRequest, type Wire } from "../../support/model-server.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";

const LIMIT = 9000;
const TURNS = 300;

/** Ids of calls and of results, in the order of a request, whatever its wire. */
function callsAndResults(request: RecordedRequest): { kind: "call" | "result"; id: unknown }[] {
  return messagesOf(request).flatMap((message) => {
    const calls = list(pick(message, "tool_calls")).map((call) => pick(call, "id"));
    const parts = list(pick(message, "content"));
    const ofType = (type: string, id: string) =>
      parts.filter((part) => pick(part, "type") === type).map((part) => pick(part, id));
    const type = pick(message, "type");
    return [
      ...[
        ...calls,
        ...ofType("tool_use", "id"),
        ...(type === "function_call" ? [pick(message, "call_id")] : []),
      ].map((id) => ({ kind: "call" as const, id })),
      ...[
        ...(pick(message, "role") === "tool" ? [pick(message, "tool_call_id")] : []),
        ...ofType("tool_result", "tool_use_id"),
        ...(type === "function_call_output" ? [pick(message, "call_id")] : []),
      ].map((id) => ({ kind: "result" as const, id })),
    ];
  });
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
  "[S-216] [S-221] a run of 300 turns stays within its model's context, every call with its result: %s",
  async (wire) => {
    const model = boundedModel({
      limitTokens: LIMIT,
      turn: (count) =>
        count % TURNS === 0
          ? { text: "done" }
          : {
              text: `step ${count}`,
              calls: [
                { name: "read", arguments: { filePath: "notes.txt", offset: count % 7 } },
                { name: "read", arguments: { filePath: `missing-${count}.txt` } },
              ],
            },
    });
    const kernel = await openTestKernel({
      wire,
      contextTokens: LIMIT,
      prepare: (project) => project.write("notes.txt", "some line of notes\n".repeat(50)),
    });
    kernel.server.otherwise(model.answer);
    const { end, watch } = await kernel.run("Read my notes very often.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });

    const checkpoints = watch.payloads("context_checkpoint_committed");
    expect(checkpoints.length).toBeGreaterThan(10);
    expect(watch.types).not.toContain("plugin_diagnostic");
    expect(model.refused.filter((request) => !isSummaryRequest(request))).toEqual([]);
    const sizes = model.turns.map((request) => messagesOf(request).length);
    expect(Math.max(...sizes.slice(TURNS / 2))).toBeLessThanOrEqual(
      2 * Math.max(...sizes.slice(0, TURNS / 2)),
    );
    expect(model.turns.flatMap(callsAndResults).length).toBeGreaterThan(4 * TURNS);
    for (const request of [...model.turns, ...model.summaries]) {
      const open = new Set<unknown>();
      for (const { kind, id } of callsAndResults(request)) {
        if (kind === "call") open.add(id);
        else expect(open.delete(id)).toBe(true);
      }
      expect([...open]).toEqual([]);
    }
  },
);
