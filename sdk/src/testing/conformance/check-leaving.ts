import { describeAnswer } from "../answer.ts";
import type { Bench, Started } from "./bench.ts";
import type { Check } from "./check.ts";
import { isRunning, processesOf } from "./process-tree.ts";
import { fail } from "./verdict.ts";

export const checkLeaving: Check = {
  id: "C-08",
  title: "liveness and leaving: ping while busy, exit after shutdown and at the end of input",
  ids: ["E-009", "E-026", "E-065"],
  async run(bench) {
    const workspace = await bench.folder(bench.samples.cancel?.files);
    const started = await bench.start(workspace);
    const idle = await started.peer.driver.request("plugin/ping", {}, bench.limits.answerMs);
    if (idle.kind === "none") {
      fail(`did not answer plugin/ping: ${idle.why}`, "answer {} or an error within 2 s");
    }
    await busy(bench, started, workspace);
    if (bench.isShared) await detaches(bench, started);
    else {
      await leavesAfter(bench, started, "plugin/shutdown");
      await leavesAfter(bench, await bench.start(await bench.folder()), "the end of its input");
    }
  },
};

async function busy(bench: Bench, started: Started, workspace: string): Promise<void> {
  const sample = bench.samples.cancel;
  if (sample === undefined || bench.options.subject.manifest?.max_in_flight === 1) return;
  const { answer } = await bench.call(started, sample, workspace);
  const { driver } = started.peer;
  const ping = await driver.request("plugin/ping", {}, bench.limits.answerMs);
  if (ping.kind === "none") {
    fail(
      `did not answer plugin/ping while a call ran: ${ping.why}`,
      "go on serving during calls, or declare max_in_flight 1",
    );
  }
  // The call goes on: leaving has to end it too.
  void answer;
}

async function leavesAfter(bench: Bench, { peer }: Started, what: string): Promise<void> {
  const below = processesOf(peer.pid) ?? [];
  if (what === "plugin/shutdown") peer.driver.notify("plugin/shutdown", {});
  else peer.closeInput();
  if (!(await peer.leaves(bench.limits.leaveMs))) {
    fail(
      `still runs ${bench.limits.leaveMs} ms after ${what}`,
      "end its work and its process within 3 s",
    );
  }
  const left = await peer.remaining([], bench.limits.cancelMs);
  const orphans = below.filter(isRunning);
  if (left.length + orphans.length > 0) {
    fail(
      `left ${left.length + orphans.length} of its processes running after ${what}`,
      "end them before it leaves",
    );
  }
}

async function detaches(bench: Bench, { peer }: Started): Promise<void> {
  const params = { plugin: bench.options.name };
  const answer = await peer.control?.request("process/detach", params, bench.limits.leaveMs);
  if (answer?.kind === "result") return;
  fail(
    `did not stop when the host let go of it: ${answer === undefined ? "no host" : describeAnswer(answer)}`,
    "end its calls and its `stop` within 3 s",
  );
}
