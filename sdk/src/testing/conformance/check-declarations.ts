import { isDeepStrictEqual } from "node:util";
import { findDeclarationProblem } from "../../protocol/declaration-problem.ts";
import type { ToolDeclaration } from "../../protocol/tool.ts";
import type { Check } from "./check.ts";
import { requireDeclaration } from "./require-shape.ts";
import { fail } from "./verdict.ts";

export const checkDeclarations: Check = {
  id: "C-05",
  title: "declarations: the manifest says what is served, and every argument exists",
  ids: ["E-034", "E-038", "E-070"],
  async run(bench) {
    const { introduction } = await bench.start(await bench.folder());
    const { manifest } = bench.options.subject;
    const served = introduction["tools"];
    const declared = manifest?.tools ?? [];
    if (manifest === null && !Array.isArray(served)) {
      fail("has no manifest and named no tools", "answer capabilities and tools");
    }
    for (const tool of Array.isArray(served) ? (served as unknown[]) : []) {
      const parsed = requireDeclaration(tool);
      const { name } = parsed;
      judge(parsed);
      if (manifest === null) continue;
      const expected = declared.find((candidate) => candidate.name === name);
      if (expected === undefined) {
        fail(`serves the tool ${name}, which its manifest does not have`, "declare it there");
      }
      if (!isDeepStrictEqual(normalized(expected), normalized(parsed))) {
        fail(`serves ${name} otherwise than its manifest says`, "generate the manifest anew");
      }
    }
    for (const tool of declared) judge(tool);
  },
};

function judge(tool: ToolDeclaration): void {
  const found = findDeclarationProblem(tool);
  if (found === undefined) return;
  fail(
    `declares ${tool.name} with a wrong ${found.member} (${found.problem})`,
    "declare it as section 6.1 says",
  );
}

/** As JSON, without members that are not there. */
function normalized(tool: ToolDeclaration): unknown {
  return JSON.parse(JSON.stringify(tool));
}
