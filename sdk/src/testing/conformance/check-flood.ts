import { PROGRESS_WINDOW_BYTES } from "../../protocol/version.ts";
import { tellAnswer } from "../answer.ts";
import type { DrivenCall } from "../driven-call.ts";
import type { Bench, Started } from "./bench.ts";
import type { Check } from "./check.ts";
import { fail, failOn, skip } from "./verdict.ts";

/** A plugin that holds its window has many chances to overrun it meanwhile. */
const PROBES = 32;
const FLOOD_MS = 120_000;

export const checkFlood: Check = {
  id: "C-15",
  title: "flood: nothing is lost, the window is kept, neighbours are served",
  ids: ["E-103"],
  async run(bench) {
    const sample = bench.samples.flood;
    if (sample === undefined) skip("conformance.json has no flood");
    const workspace = await bench.folder(sample.files);
    const started = await bench.start(workspace);
    const { call, answer } = await bench.call(
      started,
      sample,
      workspace,
      { keep: false, acknowledge: !bench.isShared },
      FLOOD_MS,
    );
    const { driver } = started.peer;
    await driver.until(() => call.byteLength > 0 || call.ended, bench.limits.answerMs);
    if (bench.isShared) await holdsWindow(bench, started, call);
    if (bench.options.subject.manifest?.max_in_flight !== 1) {
      await bench.barrier(started.peer, "the beginning of a flood");
    }
    let acknowledging = bench.isShared;
    while (acknowledging && !call.ended) {
      const seen = call.byteLength;
      call.acknowledge((bytes) =>
        driver.notify("plugin/tools/progress_ack", { invocation_id: call.invocationId, bytes }),
      );
      acknowledging = await driver.until(() => call.byteLength > seen || call.ended, FLOOD_MS);
    }
    const settled = await answer;
    if (settled.kind !== "result") {
      fail(tellAnswer("the flood", settled), "send all of it and answer");
    }
    failOn(call.problems);
    if (call.byteLength !== sample.bytes) {
      fail(
        `sent ${call.byteLength} of the ${sample.bytes} bytes of its output`,
        "send every byte, and wait for room instead of dropping any",
      );
    }
  },
};

/** In a shared process a call waits while 1 MiB is not acknowledged (E-103). */
async function holdsWindow(bench: Bench, started: Started, call: DrivenCall): Promise<void> {
  const half = PROGRESS_WINDOW_BYTES / 2;
  await started.peer.driver.until(() => call.byteLength >= half || call.ended, FLOOD_MS);
  for (let probe = 0; probe < PROBES && !call.ended; probe += 1) {
    await bench.barrier(started.peer, "a flood that is not acknowledged");
  }
  if (call.byteLength <= PROGRESS_WINDOW_BYTES) return;
  fail(
    `sent ${call.byteLength} bytes of one call without an acknowledgement`,
    `hold at most ${PROGRESS_WINDOW_BYTES} until plugin/tools/progress_ack says they are captured`,
  );
}
