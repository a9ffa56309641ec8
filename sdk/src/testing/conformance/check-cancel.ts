import { PROGRESS_WINDOW_BYTES } from "../../protocol/version.ts";
import { type Answer, tellAnswer } from "../answer.ts";
import type { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import type { PluginPeer } from "./plugin-peer.ts";
import { processesOf } from "./process-tree.ts";
import type { SampleCall } from "./samples.ts";
import { fail, failOn, skip } from "./verdict.ts";

/** Longer than any check waits for the call itself. */
const LONG_MS = 600_000;

export const checkCancel: Check = {
  id: "C-16",
  title: "cancel and timeout: answered in time, in every wait, with its processes gone",
  ids: ["E-105", "E-107"],
  async run(bench) {
    const sample = bench.samples.cancel;
    const workspace = await bench.folder(sample?.files);
    const started = await bench.start(workspace);
    const { peer } = started;
    await crosses(bench, peer);
    if (bench.options.subject.manifest?.max_in_flight === 1) {
      skip("a plugin that takes one request at a time cannot see a cancel (E-182)");
    }
    await stopsWaiting(bench);
    if (sample === undefined) skip("conformance.json has no cancel");

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
    await leavesNothing(bench, peer, before);
    failOn([...early.call.problems, ...late.call.problems]);
  },
};

/** The time of a call may be over when its answer is on its way: a cancel of nothing is nothing. */
async function crosses(bench: Bench, { driver }: PluginPeer): Promise<void> {
  const id = driver.takeId();
  await driver.request("plugin/ping", {}, bench.limits.answerMs, id);
  driver.notify("$/cancelRequest", { id });
  const next = await driver.request("plugin/ping", {}, bench.limits.answerMs);
  if (next.kind !== "none") return;
  fail(
    `did not answer after a cancel that crossed the answer to its request: ${next.why}`,
    "ignore a $/cancelRequest of a request that is answered",
  );
}

/** A call whose time is over has often nothing to do but to wait, for input or for room. */
async function stopsWaiting(bench: Bench): Promise<void> {
  const { stdin, flood } = bench.samples;
  if (stdin !== undefined) {
    await stops(bench, stdin, { stdin: true }, "while it waited for input");
  }
  if (flood !== undefined) {
    const options = { acknowledge: false, keep: false };
    await stops(bench, flood, options, "while nobody took its output");
  }
}

/** Past this nothing more may come, and sooner nothing more comes from a call that waits. */
const FULL_MS = 500;

async function stops(
  bench: Bench,
  sample: SampleCall,
  options: Parameters<Bench["call"]>[3],
  when: string,
): Promise<void> {
  const workspace = await bench.folder(sample.files);
  const started = await bench.start(workspace);
  const { driver } = started.peer;
  const before = processesOf(started.peer.pid) ?? [];
  const { call, answer, cancel } = await bench.call(started, sample, workspace, options, LONG_MS);
  await driver.request("plugin/ping", {}, bench.limits.cancelMs);
  await driver.until(() => call.ended || call.byteLength >= PROGRESS_WINDOW_BYTES, FULL_MS);
  cancel();
  judge(await within(answer, bench), when);
  await leavesNothing(bench, started.peer, before);
  failOn(call.problems);
}

async function leavesNothing(bench: Bench, peer: PluginPeer, before: readonly number[]) {
  const left = await peer.remaining(before, bench.limits.cancelMs);
  if (left.length > 0) {
    fail(`left ${left.length} processes of a cancelled call running`, "end them before it answers");
  }
  await bench.barrier(peer, "a cancelled call");
}

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
