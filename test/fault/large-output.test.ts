import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { CookieProcess } from "../support/run-cookie.ts";
import { payloadsOf, readLog } from "../support/session-log.ts";
import type { TempProject } from "../support/temp-project.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { whenLines } from "./support/log-lines.ts";
import { processesOf, residentBytes, waitUntil } from "./support/processes.ts";

const FLOOD_BYTES = 250_000_000;
/** Far below what is printed: the garbage collector takes room for what passes through, but only up to a point. */
const MAX_GROWTH_BYTES = 80_000_000;
const CAP_BYTES = 200_000_000;
const SAMPLE_MS = 5;
const WAIT_FOR_GO = bashLine("echo > waiting; until [ -e go ]; do sleep 0.02; done");

describe("a flood of output", () => {
  test("[B058] a quarter of a gigabyte is kept in flat memory while other calls are answered", async () => {
    const project = await faultProject();
    await project.write("note.txt", "a note\n");
    const flood = `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x`;
    const run = startOffline(project, [
      WAIT_FOR_GO,
      "---",
      bashLine(flood),
      'call read {"filePath":"note.txt"}',
    ]);
    const log = await whenLines(project, 1, run);
    expect(await growthAfter(project, run)).toBeLessThan(MAX_GROWTH_BYTES);
    expect((await run.result).exitCode).toBe(0);

    const events = await readLog(log);
    const [, flooded, read] = payloadsOf(events, "tool_call_started").map(
      ({ tool_call_id }) => tool_call_id,
    );
    const ends = payloadsOf(events, "tool_call_terminated");
    expect(ends.map(({ tool_call_id }) => tool_call_id).slice(1)).toEqual([read, flooded]);
    const streams = ends.at(-1)?.result?.retained_output?.streams ?? [];
    const digest = createHash("sha256");
    for (let left = FLOOD_BYTES; left > 0; left -= 1_000_000) digest.update("x".repeat(1_000_000));
    const expected = digest.digest("hex");
    expect(streams[0]).toMatchObject({
      name: "stdout",
      sha256: expected,
      byte_length: FLOOD_BYTES,
    });
    const artifact = join(dirname(log), "artifacts", expected);
    expect((await stat(artifact)).size).toBe(FLOOD_BYTES);
    expect(await digestOf(artifact)).toBe(expected);
  });

  test("[B055] endless output ends its call at the cap, in flat memory", async () => {
    const project = await faultProject();
    await project.writeState("config.toml", `[tool_output]\nmax_retained_bytes = ${CAP_BYTES}\n`);
    const run = startOffline(project, [WAIT_FOR_GO, "---", bashLine("timeout 100 yes")]);
    const log = await whenLines(project, 1, run);
    expect(await growthAfter(project, run)).toBeLessThan(MAX_GROWTH_BYTES);
    expect((await run.result).exitCode).toBe(0);
    expect(payloadsOf(await readLog(log), "tool_call_terminated").at(-1)).toMatchObject({
      outcome: "failed",
      error: { code: "resource_limit" },
      result: { retained_output: { incomplete: true, streams: [{ byte_length: CAP_BYTES }, {}] } },
    });
    await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");
  });
});

/** How much the kernel's memory grows, at its highest, from its first working command to the end of the run. */
async function growthAfter(project: TempProject, { child }: CookieProcess): Promise<number> {
  const pid = child.pid ?? 0;
  await waitUntil(() => existsSync(join(project.cwd, "waiting")), "the first command runs");
  const before = residentBytes(pid);
  expect(before).toBeGreaterThan(0);
  await project.write("go", "");
  let peak = before;
  while (child.exitCode === null) {
    peak = Math.max(peak, residentBytes(pid));
    await delay(SAMPLE_MS);
  }
  return peak - before;
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
