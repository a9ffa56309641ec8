import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ToolsPrepare } from "../../protocol/plugin-methods.ts";
import type { ToolDeclaration } from "../../protocol/tool.ts";
import { type Answer, tellAnswer } from "../answer.ts";
import { preparedPart } from "../prepared-part.ts";
import { type Bench, type Started, writeFiles } from "./bench.ts";
import type { Check } from "./check.ts";
import { requireShape } from "./require-shape.ts";
import type { SampleCall } from "./samples.ts";
import { fail, skip } from "./verdict.ts";

export const checkPreparation: Check = {
  id: "C-13",
  title: "preparation: repeatable, without effect; tokens good for one call",
  ids: ["E-082", "E-083", "E-084", "E-086", "E-091"],
  async run(bench) {
    const started = await bench.start(await bench.folder());
    const tools = bench.toolsOf(started).filter(({ prepare }) => prepare?.mode === "dynamic");
    if (tools.length === 0) skip("no tool prepares dynamically");
    const isDynamic = (sample: SampleCall) => tools.some(({ name }) => name === sample.tool);
    const calls = (bench.samples.calls ?? []).filter(isDynamic);
    const changed = (bench.samples.changed ?? []).filter(isDynamic);
    if (calls.length + changed.length === 0) {
      skip("conformance.json has no call of a tool that prepares dynamically");
    }
    for (const sample of calls) await preparesTwice(bench, started, sample);
    for (const sample of changed) await noticesChange(bench, started, sample);
  },
};

async function preparesTwice(bench: Bench, started: Started, sample: SampleCall): Promise<void> {
  const workspace = await bench.folder(sample.files);
  const declaration = bench.toolOf(started, sample.tool);
  const request = { tool: sample.tool, arguments: sample.arguments, cwd: workspace };
  const { driver } = started.peer;
  const before = await snapshot(workspace);
  const first = judge(declaration, await driver.prepare(request, bench.limits.answerMs));
  const second = judge(declaration, await driver.prepare(request, bench.limits.answerMs));
  const { prepared: unused, ...facts } = first;
  const { prepared: token, ...sameFacts } = second;
  if (!isDeepStrictEqual(facts, sameFacts)) {
    fail(
      `prepared the same call of ${sample.tool} twice with different results`,
      "yield the same actions, resources and labels while nothing has changed",
    );
  }
  if (!isDeepStrictEqual(before, await snapshot(workspace))) {
    fail(
      `changed the workspace while it prepared ${sample.tool}`,
      "have no outside effect before the call",
    );
  }
  if (typeof unused === "string") {
    driver.notify("plugin/tools/discard", { prepared: [unused] });
    await bench.barrier(started.peer, "plugin/tools/discard");
    await refusesToken(bench, started, declaration, sample, { workspace, result: first });
  }
  if (typeof token !== "string") return;
  const call = callOf(declaration, sample, workspace, second);
  await driver.call(call, bench.limits.answerMs).answer;
  await refusesToken(bench, started, declaration, sample, { workspace, result: second });
}

/** A token that was given back or used up must not work (E-084, E-091). */
async function refusesToken(
  bench: Bench,
  started: Started,
  declaration: ToolDeclaration,
  sample: SampleCall,
  { workspace, result }: { workspace: string; result: Record<string, unknown> },
): Promise<void> {
  const call = callOf(declaration, sample, workspace, result);
  const answer = await started.peer.driver.call(call, bench.limits.answerMs).answer;
  if (answer.kind === "error" && answer.code === "prepared_capability_lost") return;
  fail(
    tellAnswer("a call with a token that was used or given back", answer),
    "fail it with prepared_capability_lost",
  );
}

async function noticesChange(
  bench: Bench,
  started: Started,
  sample: SampleCall & { readonly change: Readonly<Record<string, string>> },
): Promise<void> {
  const workspace = await bench.folder(sample.files);
  const declaration = bench.toolOf(started, sample.tool);
  const { driver } = started.peer;
  const request = { tool: sample.tool, arguments: sample.arguments, cwd: workspace };
  const result = judge(declaration, await driver.prepare(request, bench.limits.answerMs));
  await writeFiles(workspace, sample.change);
  const before = await snapshot(workspace);
  const call = callOf(declaration, sample, workspace, result);
  const answer = await driver.call(call, bench.limits.answerMs).answer;
  if (answer.kind !== "error" || answer.code !== "operation_changed") {
    fail(
      tellAnswer(`a call of ${sample.tool} whose target had changed since its preparation`, answer),
      "check first that what was prepared still holds, and fail with operation_changed",
    );
  }
  if (!isDeepStrictEqual(before, await snapshot(workspace))) {
    fail(
      `refused a call of ${sample.tool} whose target had changed, but had an effect`,
      "have none when it answers operation_changed",
    );
  }
}

function callOf(
  declaration: ToolDeclaration,
  sample: SampleCall,
  workspace: string,
  result: Record<string, unknown>,
) {
  return {
    tool: sample.tool,
    arguments: sample.arguments,
    cwd: workspace,
    output: declaration.output ?? { mode: "single" as const },
    ...preparedPart(result),
  };
}

function judge(tool: ToolDeclaration, answer: Answer): Record<string, unknown> {
  if (answer.kind !== "result") {
    return fail(
      tellAnswer(`plugin/tools/prepare for ${tool.name}`, answer),
      "prepare the calls that conformance.json lists",
    );
  }
  const { resources } = requireShape(ToolsPrepare.result, answer.result, {
    did: `prepared ${tool.name}`,
    must: "answer as section 6.2 says",
  });
  const actions = tool.prepare?.mode === "dynamic" ? tool.prepare.actions : [];
  for (const { action, label } of resources) {
    if (!actions.includes(action)) {
      fail(`prepared ${tool.name} with the action ${action}`, "name actions of its declaration");
    }
    const name = tool.permission_name;
    const isOwn = label === null || label === name || label.startsWith(`${name} `);
    if (action === "plugin" && !isOwn) {
      fail(
        `prepared ${tool.name} with the label ${label}`,
        `begin labels of action plugin with ${name} and a space`,
      );
    }
  }
  return answer.result;
}

/** What lies in a folder, by path. */
async function snapshot(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile()) return [path, ""] as const;
      return [
        path,
        createHash("sha256")
          .update(await readFile(path))
          .digest("hex"),
      ] as const;
    }),
  );
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
}
