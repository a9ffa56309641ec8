import { expect, test } from "vitest";
import { checkAnswer } from "../../../../kernel/src/plugin/check-answer.ts";
import type { ResolvedTool } from "../../../../kernel/src/plugin/plugin-facts.ts";

test("[E-092] metadata nested 100000 deep is the plugin's violation, not a failure of the kernel", () => {
  const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown[];
  const tool = { output: { mode: "single" } } as ResolvedTool;
  expect(() => checkAnswer({ content: "x", metadata: { deep } as never }, tool, false)).toThrow(
    "the metadata is nested too deeply",
  );
});
