import { excerpt } from "../answer.ts";
import type { Check } from "./check.ts";
import type { PluginPeer } from "./plugin-peer.ts";
import { fail } from "./verdict.ts";

export const checkStandardOutput: Check = {
  id: "C-03",
  title: "stdout carries frames only, and nothing before plugin/initialize is answered",
  ids: ["E-001", "E-010", "E-011", "E-022"],
  async run(bench) {
    const workspace = await bench.folder();
    const peer = await bench.open(workspace);
    const introduction = await bench.introduce(peer, workspace);
    const { driver } = peer;
    const early =
      (driver.framesBeforeAnswer ?? driver.frames.length) > 0 ? driver.frames[0] : undefined;
    if (early !== undefined) {
      fail(
        `sent ${excerpt(early.method)} before it answered plugin/initialize`,
        "send nothing but host/log until then",
      );
    }
    judge(peer);
    if (introduction.kind !== "result") return;
    for (const sample of bench.samples.calls ?? []) {
      const place = await bench.folder(sample.files);
      const { answer: called } = await bench.call(
        { peer, introduction: introduction.result },
        sample,
        place,
      );
      await called;
      judge(peer);
    }
    driver.notify("plugin/shutdown", {});
    await peer.leaves(bench.isShared ? 0 : bench.limits.leaveMs);
    judge(peer);
  },
};

function judge({ badLines }: PluginPeer): void {
  const [bad] = badLines;
  if (bad === undefined) return;
  fail(
    `wrote "${excerpt(bad.head)}" to stdout (${bad.reason})`,
    "write one JSON object per line there and everything else, console.log included, to stderr",
  );
}
