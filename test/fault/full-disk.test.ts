import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CookieError, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openTestKernel, type TestKernel } from "../support/open-test-kernel.ts";
import { jsonLines } from "../support/run-cookie.ts";
import { parseLog, payloadsOf, readLog } from "../support/session-log.ts";
import { bashLine, faultProject, start, startOffline } from "./support/fault-project.ts";
import { completeBytes, onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";
import { mountSmallDisk, noMount } from "./support/small-disk.ts";

const MIB = 1024 * 1024;

async function logIn(stateDir: string): Promise<string> {
  const log = await onlyLog({ stateDir });
  if (log === undefined) throw new Error("there is no log");
  return log;
}

describe.skipIf(noMount !== null)(
  `a disk of one MiB that becomes full (${noMount ?? "mounted"})`,
  () => {
    test("[disk full: artifact, tool call] [B104] output that fills it fails its call, and the run goes on", async () => {
      const project = await faultProject();
      const disk = mountSmallDisk(MIB);
      const run = startOffline(
        project,
        [
          bashLine("head -c 2000000 /dev/zero | tr '\\0' x; echo ran >> marks"),
          "---",
          bashLine("echo fine"),
        ],
        ["--data-dir", disk],
      );
      expect((await run.result).exitCode).toBe(0);
      const calls = payloadsOf(await readLog(await logIn(disk)), "tool_call_terminated");
      expect(calls[0]).toMatchObject({
        outcome: "failed",
        result: null,
        error: { code: "execution_failed", message: expect.stringContaining("full") },
      });
      expect(calls[1]).toMatchObject({ outcome: "completed" });
    });

    test("[disk full: append, opening] [B104] [S-047] a record that does not fit fails the run; after space is freed the session goes on", async () => {
      const project = await faultProject();
      const disk = mountSmallDisk(MIB);
      const filler = join(disk, "filler");
      const run = startOffline(
        project,
        [
          bashLine(`echo ran >> marks; head -c 2000000 /dev/zero > ${filler}`),
          ...Array.from({ length: 20 }, () => ["---", bashLine(`: ${"x".repeat(4000)}`)]).flat(),
        ],
        ["--data-dir", disk, "-o", "json"],
      );
      const failed = await run.result;
      expect(failed).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(
          /"storage_failed".*the storage of session .* failed \(ENOSPC/,
        ),
      });
      const log = await logIn(disk);
      const before = completeBytes(log);
      const recorded = parseLog(before.toString("utf8"));
      for (const { type, event } of jsonLines(failed.stdout)) {
        if (type === "event") expect(recorded).toContainEqual(event);
      }
      const resume = ["--data-dir", disk, "--resume-session", sessionOf(log)];
      const tooEarly = await startOffline(project, ["say hello"], resume).result;
      expect(tooEarly).toMatchObject({
        exitCode: 5,
        stdout: "",
        stderr: expect.stringContaining("ENOSPC"),
      });

      await rm(filler);
      const shown = await start(project, ["session", "show", "--data-dir", disk, sessionOf(log)])
        .result;
      expect(shown).toMatchObject({
        exitCode: 0,
        stdout: expect.not.stringContaining("unreadable"),
      });
      const resumed = await startOffline(project, [bashLine("echo again >> marks")], resume).result;
      expect(resumed.exitCode).toBe(0);
      expect(completeBytes(log).subarray(0, before.byteLength).equals(before)).toBe(true);
      const events = await readLog(log);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(openEnds(events)).toEqual({ runs: [], calls: [] });
    });

    test("[disk full: append] [B104] [S-047] [S-246] one kernel goes on by itself once space is there again", async () => {
      const kernel = await openTestKernel({
        prepare: async (project) => mountSmallDisk(MIB, join(project.stateDir, "sessions")),
      });
      const { stateDir } = kernel.project;
      kernel.server.otherwise({ text: "x".repeat(2000) });
      const session = await kernel.createSession();
      expect((await kernel.run("First.", { session })).end.type).toBe("run_completed");

      const filler = join(stateDir, "sessions", "filler");
      await fill(filler);
      const before = completeBytes(await logIn(stateDir));
      expect(await failureOf(kernel, session)).toMatchObject({
        code: "storage_failed",
        message: expect.stringContaining("ENOSPC"),
      });
      await rm(filler);
      const last = await kernel.start(session, "Last.");
      expect((await kernel.watch(session).end(last)).type).toBe("run_completed");

      const log = await logIn(stateDir);
      expect(completeBytes(log).subarray(0, before.byteLength).equals(before)).toBe(true);
      const events = await readLog(log);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(openEnds(events)).toEqual({ runs: [], calls: [] });
    });
  },
);

/** Writes until nothing more fits. */
async function fill(file: string): Promise<void> {
  await writeFile(file, Buffer.alloc(2 * MIB)).catch(() => undefined);
}

/** Speaks until the rest of the log's last page is used up as well; yields what then goes wrong. */
async function failureOf(kernel: TestKernel, session: SessionId): Promise<unknown> {
  for (let runs = 0; runs < 50; runs += 1) {
    try {
      const { end } = await kernel.run("More.", { session });
      if (end.type === "run_failed") return end.error;
    } catch (error) {
      const { cause } = error as CookieError;
      return cause instanceof Error && "code" in cause && "data" in cause ? cause : error;
    }
  }
  return undefined;
}
