import { type Answer, tellAnswer } from "../answer.ts";
import type { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import { processesOf } from "./process-tree.ts";
import { fail, failOn, skip } from "./verdict.ts";

/** Longer than any check waits for the call itself. */
const LONG_MS = 600_000;

export const checkCancel: Check = {
  id: "C-16",
  title: "cancel: answered in time, early and late, with its processes gone",
  ids: ["E-105"],
  async run(bench) {
    const sample = bench.samples.cancel;
    if (bench.options.subject.manifest?.max_in_flight === 1) {
      skip("a plugin that takes one request at a time cannot see a cancel (E-182)");
    }
    if (sample === undefined) skip("conformance.json has no cancel");
    const workspace = await bench.folder(sample.files);
    const started = await bench.start(workspace);
    const { peer } = started;

    const early = await bench.call(started, sample, workspace, {}, LONG_MS);
    early.cancel();
    judge(await within(early.answer, bench), "right after it was sent");

    const before = processesOf(peer.pid) ?? [];
    const late = await bench.call(started, sample, workspace, {}, LONG_MS);
    // Under way for sure: it has printed something, or a request behind it was answered.
    await peer.driver.request("plugin/ping", {}, bench.limits.cancelMs);
    await peer.driver.until(() => late.call.byteLength > 0 || late.call.ended, 500);
    if (late.call.ended) {
      fail(
        tellAnswer(
          "the call that conformance.json says goes on until it is cancelled",
          await late.answer,
        ),
        "be given a call there that takes long",
      );
    }
    late.cancel();
    judge(await within(late.answer, bench), "while it ran");
    const left = await peer.remaining(before, bench.limits.cancelMs);
    if (left.length > 0) {
      fail(
        `left ${left.length} processes of a cancelled call running`,
        "end them before it answers",
      );
    }
    await bench.barrier(peer, "a cancelled call");
    failOn([...early.call.problems, ...late.call.problems]);
  },
};

async function within(answer: Promise<Answer>, bench: Bench): Promise<Answer> {
  const { cancelMs } = bench.limits;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Answer>((resolve) => {
    timer = setTimeout(
      () => resolve({ kind: "none", why: `no answer came within ${cancelMs} ms` }),
      cancelMs,
    );
  });
  const settled = await Promise.race([answer, late]);
  clearTimeout(timer);
  return settled;
}

function judge(answer: Answer, when: string): void {
  if (answer.kind === "result" || (answer.kind === "error" && answer.number === -32800)) return;
  fail(
    tellAnswer(`a call that was cancelled ${when}`, answer),
    "stop the work and answer within 2 s, with a result or the error -32800",
  );
}
