import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { payloadsOf, readLog } from "../support/session-log.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { onlyLog } from "./support/log-lines.ts";
import { residentBytes, waitUntil } from "./support/processes.ts";

const FLOOD_BYTES = 100_000_000;
const MAX_GROWTH_BYTES = 30_000_000;
const SAMPLE_MS = 5;

describe("one hundred megabytes from one command", () => {
  test("[B055] [B058] [T-131] [T-133] all of it is kept, memory stays, other calls are answered meanwhile", async () => {
    const project = await faultProject();
    await project.write("note.txt", "a note\n");
    const flood = `echo > flooding; head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x`;
    const run = startOffline(project, [
      bashLine("echo hello; until [ -e go ]; do sleep 0.02; done"),
      "---",
      bashLine(flood),
      'call read {"filePath":"note.txt"}',
    ]);
    const pid = run.child.pid ?? 0;
    let log: string | undefined;
    await waitUntil(async () => {
      log ??= await onlyLog(project);
      return log !== undefined && payloadsOf(await readLog(log), "approval_finalized").length === 1;
    }, "the first command runs");
    await delay(0);
    const before = residentBytes(pid);
    await project.write("go", "");
    let peak = before;
    while (run.child.exitCode === null) {
      peak = Math.max(peak, residentBytes(pid));
      await delay(SAMPLE_MS);
    }
    expect((await run.result).exitCode).toBe(0);
    expect(before).toBeGreaterThan(0);
    expect(peak - before).toBeLessThan(MAX_GROWTH_BYTES);

    const events = await readLog(log ?? "");
    const [, flooded, read] = payloadsOf(events, "tool_call_started").map(({ tool_call_id }) => tool_call_id);
    const ends = payloadsOf(events, "tool_call_terminated");
    expect(ends.map(({ tool_call_id }) => tool_call_id).slice(1)).toEqual([read, flooded]);
    const streams = ends.at(-1)?.result?.retained_output?.streams ?? [];
    const digest = createHash("sha256");
    for (let left = FLOOD_BYTES; left > 0; left -= 1_000_000) digest.update("x".repeat(1_000_000));
    const expected = digest.digest("hex");
    expect(streams[0]).toMatchObject({ name: "stdout", sha256: expected, byte_length: FLOOD_BYTES });
    const artifact = join(dirname(log ?? ""), "artifacts", expected);
    expect((await stat(artifact)).size).toBe(FLOOD_BYTES);
    expect(await digestOf(artifact)).toBe(expected);
  });
});

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
