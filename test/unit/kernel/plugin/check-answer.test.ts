import { ToolCallResult } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { checkAnswer } from "../../../../kernel/src/plugin/check-answer.ts";
import { declareTool, resolveTool } from "../tool/dispatch-fixture.ts";

const SINGLE = resolveTool(declareTool({ name: "one" }));
const NAMED = resolveTool(
  declareTool({ name: "two", output: { mode: "named", streams: ["out", "err"] } }),
);
const out = (text: string) => ({ stream: "out", text });

describe("the answer of a call", () => {
  test.for([
    ["text after output was streamed", SINGLE, { content: "again" }, true],
    ["named text after output was streamed", NAMED, { outputs: [out("again")] }, true],
    ["one text for named streams", NAMED, { content: "x" }, false],
    ["named streams for one text", SINGLE, { outputs: [out("x")] }, false],
    ["a stream given twice", NAMED, { outputs: [out("x"), out("y")] }, false],
    ["a stream of someone else", NAMED, { outputs: [{ stream: "log", text: "" }] }, false],
  ] as const)("[T-038] [E-092] [E-093] %s is an error", ([, tool, answer, streamed]) => {
    const given = ToolCallResult.parse(answer);
    expect(() => checkAnswer(given, tool, streamed)).toThrow(
      expect.objectContaining({ code: "protocol_violation" }),
    );
  });

  test.for([{}, { content: "", streamed: true }, { content: "", outputs: [] }])(
    "[T-038] [E-092] %j is no completion",
    (answer) => {
      expect(ToolCallResult.safeParse(answer).success).toBe(false);
    },
  );

  test.for([
    ["a title", { title: "t".repeat(1024) }, { title: "t".repeat(1025) }],
    ["a file name", filename("f".repeat(512)), filename("f".repeat(513))],
    ["a file name", filename("f"), filename("")],
    ["a file name", filename("f"), filename("a\nb")],
    [
      "attachments",
      attached(...Array<string>(256).fill("plot")),
      attached(...Array<string>(257).fill("plot")),
    ],
  ] as const)("[T-039] %s has a bound", ([, within, beyond]) => {
    expect(ToolCallResult.safeParse({ content: "", ...within }).success).toBe(true);
    expect(ToolCallResult.safeParse({ content: "", ...beyond }).success).toBe(false);
  });

  test.for([
    {},
    { artifact: "artifact://x", scratch: "plot" },
    ...["", ".", "..", "a/b", "../a", "a\\b", "a\0b", "n".repeat(256)].map((scratch) => ({
      scratch,
    })),
  ])("[E-110] %j is no attachment", (attachment) => {
    const answer = { content: "", attachments: [attachment] };
    expect(ToolCallResult.safeParse(answer).success).toBe(false);
  });

  test("[T-039] metadata of 64 KiB passes and one byte more does not", () => {
    const note = (length: number) => ({ content: "", metadata: { note: "x".repeat(length) } });
    const frame = JSON.stringify({ note: "" }).length;
    const largest = note(64 * 1024 - frame);
    expect(checkAnswer(largest, SINGLE, false)).toBe(largest);
    expect(() => checkAnswer(note(64 * 1024 - frame + 1), SINGLE, false)).toThrow(/metadata/);
  });

  test("[T-035] a final display is cut at 64 KiB, between characters", () => {
    const answer = checkAnswer({ content: "", display: `x${"é".repeat(40_000)}` }, SINGLE, false);
    expect(answer.display).toBe(`x${"é".repeat(32_767)}`);
  });
});

function filename(name: string) {
  return { attachments: [{ scratch: "plot", filename: name }] };
}

function attached(...scratch: string[]) {
  return { attachments: scratch.map((name) => ({ scratch: name })) };
}
