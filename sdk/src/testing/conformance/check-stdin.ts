import { randomUUID } from "node:crypto";
import { type Answer, tellAnswer } from "../answer.ts";
import type { Bench, Started } from "./bench.ts";
import type { Check } from "./check.ts";
import { fail, skip } from "./verdict.ts";

export const checkStdin: Check = {
  id: "C-17",
  title: "stdin: accepted while the call reads, not after eof, not after the end",
  ids: ["E-106"],
  async run(bench) {
    const workspace = await bench.folder(bench.samples.stdin?.files);
    const started = await bench.start(workspace);
    const reads = bench.toolsOf(started).some((tool) => typeof tool.stdin_argument === "string");
    if (!reads) skip("no tool declares stdin_argument");
    const sample = bench.samples.stdin;
    if (sample === undefined) skip("conformance.json has no stdin");
    await expectAccepted(bench, started, randomUUID(), "", false, "for a call that is not there");
    const { call, answer } = await bench.call(started, sample, workspace, { stdin: true });
    const id = call.invocationId;
    await expectAccepted(bench, started, id, sample.data, true, "while the call reads");
    await type(bench, started, id, "", true);
    await expectAccepted(bench, started, id, "more", false, "after eof");
    const settled = await answer;
    if (settled.kind !== "result") {
      fail(tellAnswer("the call that read its input", settled), "complete it");
    }
    await expectAccepted(bench, started, id, "more", false, "after its answer");
  },
};

function type(
  bench: Bench,
  { peer }: Started,
  invocationId: string,
  data: string,
  eof: boolean,
): Promise<Answer> {
  const params = {
    invocation_id: invocationId,
    ...(data === "" ? {} : { data: Buffer.from(data).toString("base64") }),
    eof,
  };
  return peer.driver.request("plugin/tools/stdin", params, bench.limits.answerMs);
}

async function expectAccepted(
  bench: Bench,
  started: Started,
  invocationId: string,
  data: string,
  expected: boolean,
  when: string,
): Promise<void> {
  const answer = await type(bench, started, invocationId, data, false);
  if (answer.kind === "result" && answer.result["accepted"] === expected) return;
  fail(tellAnswer(`input ${when}`, answer), `answer {"accepted":${expected}}`);
}
