import { ToolCallResult } from "../../protocol/plugin-methods.ts";
import { utf8Length } from "../../protocol/scalars.ts";
import { tellAnswer } from "../answer.ts";
import type { DrivenCall } from "../driven-call.ts";
import type { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import { requireShape } from "./require-shape.ts";
import type { SampleCall } from "./samples.ts";
import { fail, failOn, skip } from "./verdict.ts";

const MOST_DISPLAY_BYTES = 64 * 1024;

export const checkResults: Check = {
  id: "C-14",
  title:
    "results: one completion, declared streams, deltas within their limits, raw only if announced",
  ids: ["E-016", "E-092", "E-093", "E-096", "E-100", "E-101", "E-102"],
  async run(bench) {
    const calls = bench.samples.calls ?? [];
    if (calls.length === 0) skip("conformance.json lists no calls that may be made");
    for (const raw of [true, false]) await judgeAll(bench, calls, raw);
  },
};

async function judgeAll(bench: Bench, calls: readonly SampleCall[], raw: boolean): Promise<void> {
  const started = await bench.start(await bench.folder(), { raw });
  for (const sample of calls) {
    const workspace = await bench.folder(sample.files);
    const { call, answer } = await bench.call(started, sample, workspace);
    const settled = await answer;
    const lost = started.peer.badLines.find(({ final }) => final);
    if (lost !== undefined) {
      fail(
        `sent raw bytes that nobody can tell from lines (${lost.reason})`,
        "send raw bytes only where plugin/initialize announces raw_output, and exactly as many as it says",
      );
    }
    if (settled.kind !== "result") {
      fail(tellAnswer(`the call of ${sample.tool} in conformance.json`, settled), "complete it");
    }
    judge(sample.tool, settled.result, call);
    await bench.barrier(started.peer, `a call of ${sample.tool}`);
    failOn(call.problems);
  }
}

function judge(tool: string, result: Record<string, unknown>, call: DrivenCall): void {
  failOn(call.problems);
  const completion = requireShape(ToolCallResult, result, {
    did: `answered ${tool}`,
    must: "answer exactly one of content, outputs, streamed, and the options of section 6.3",
  });
  const { content, outputs, display, metadata } = completion;
  if (call.byteLength > 0 && completion.streamed !== true) {
    fail(`streamed the output of ${tool} and answered with text`, "answer {streamed: true}");
  }
  const mode = call.declaredOutput;
  if (content !== undefined && mode.mode === "named") {
    fail(`answered ${tool} with content, but its output is named`, "answer outputs or streamed");
  }
  if (outputs !== undefined) {
    const streams = outputs.map(({ stream }) => stream);
    const known = mode.mode === "named" ? mode.streams : [];
    if (streams.some((stream) => !known.includes(stream))) {
      fail(`answered ${tool} with a stream that it does not declare`, "name declared streams");
    }
    if (new Set(streams).size < streams.length) {
      fail(`answered ${tool} with one stream twice`, "name each stream at most once");
    }
  }
  if (display !== undefined && utf8Length(display) > MOST_DISPLAY_BYTES) {
    fail(`answered ${tool} with a display over 64 KiB`, "shorten it");
  }
  if (metadata !== undefined && utf8Length(JSON.stringify(metadata)) > MOST_DISPLAY_BYTES) {
    fail(`answered ${tool} with metadata over 64 KiB`, "shorten it");
  }
}
