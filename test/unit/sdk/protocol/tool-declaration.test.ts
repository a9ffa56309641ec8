import {
  Capabilities,
  EVENT_PAYLOADS,
  OutputDeclaration,
  StreamName,
  ToolCallResult,
  ToolsProgress,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { parseArtifactUri } from "../../../../kernel/src/artifact/artifact-uri.ts";

const named = (...streams: string[]) =>
  OutputDeclaration.safeParse({ mode: "named", streams }).success;
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);

describe("output declarations", () => {
  test.for([
    ["no stream", [], false],
    ["one stream", numbered(1), true],
    ["eight streams", numbered(8), true],
    ["nine streams", numbered(9), false],
    ["a name twice", ["out", "out"], false],
    ["names that differ in case", ["out", "OUT"], true],
  ] as const)("[T-030] [E-077] [S-116] %s: %j", ([, streams, valid]) => {
    expect(named(...streams)).toBe(valid);
  });

  const NAMES: [string, boolean][] = [
    ["a", true],
    ["A.b_c-9", true],
    ["...", true],
    ["x".repeat(64), true],
    ["x".repeat(65), false],
    ["", false],
    [".", false],
    ["..", false],
    ["a/b", false],
    ["é", false],
    ["a b", false],
    ["a\n", false],
  ];

  test.for(NAMES)(
    "[T-030] [T-031] [E-077] [S-116] the name %j is valid everywhere or nowhere: %s",
    ([name, valid]) => {
      const delta = ToolsProgress.params.safeParse({
        invocation_id: "0198c000-0000-7000-8000-00000000000b",
        output: [{ stream: name, text: "" }],
      });
      const answer = ToolCallResult.safeParse({ outputs: [{ stream: name, text: "" }] });
      const uri = `artifact://${"0".repeat(64)}/${name}`;
      const addressed = () => parseArtifactUri(uri).stream;
      expect([StreamName.safeParse(name).success, named(name)]).toEqual([valid, valid]);
      expect([delta.success, answer.success]).toEqual([valid, valid]);
      if (valid) expect(addressed()).toBe(name);
      else expect(addressed).toThrow(expect.objectContaining({ code: "artifact_uri" }));
    },
  );

  test("the log takes the same declarations", () => {
    const { output } = EVENT_PAYLOADS.tool_call_started.shape;
    expect(output.safeParse({ mode: "named", streams: ["."] }).success).toBe(false);
    expect(output.safeParse({ mode: "named", streams: ["out"] }).success).toBe(true);
  });
});

describe("capabilities", () => {
  test.for([
    [{}, true],
    [{ tools: true, resources: false, dynamic_tools: false }, true],
    [{ resources: true }, false],
    [{ subscribe_events: true }, true],
    [{ subscribe_events: ["run_started"] }, true],
    [{ subscribe_events: "run_started" }, false],
    [{ subscribe_bus: true, publish_bus: true, publish_session_events: true }, true],
    [{ intercept: ["tool_before_call"] }, true],
    [{ intercept: ["tool_after_everything"] }, false],
    [{ host: ["artifacts.write"] }, true],
    [{ host: ["root.shell"] }, false],
    [{ telepathy: true }, false],
  ] as const)("[E-033] %j: %s", ([capabilities, valid]) => {
    expect(Capabilities.safeParse(capabilities).success).toBe(valid);
  });
});
