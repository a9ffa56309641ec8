import { rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { openKernel } from "@cookie-agent/kernel";
import { CookieClient } from "@cookie-agent/sdk/client";
import {
  RunStart,
  type RunSelection,
  SessionCreate,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { payloadsOf, readLog } from "../support/session-log.ts";
import type { TempProject } from "../support/temp-project.ts";
import { bashLine, faultProject, start, startOffline } from "./support/fault-project.ts";
import { completeBytes, onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";
import { mountSmallDisk, noMount } from "./support/small-disk.ts";

const require = createRequire(import.meta.url);
const MIB = 1024 * 1024;
const OFFLINE: RunSelection = {
  agent: "default",
  model: { model: "offline/script", variant: null },
};

async function logOn(disk: string): Promise<string> {
  const log = await onlyLog({ stateDir: disk });
  if (log === undefined) throw new Error("there is no log");
  return log;
}

describe.skipIf(noMount !== null)(`a disk of one MiB that becomes full (${noMount ?? "mounted"})`, () => {
  test("[B104] output that fills it fails its call, and the run goes on", async () => {
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
    const calls = payloadsOf(await readLog(await logOn(disk)), "tool_call_terminated");
    expect(calls[0]).toMatchObject({
      outcome: "failed",
      result: null,
      error: { code: "execution_failed", message: expect.stringContaining("full") },
    });
    expect(calls[1]).toMatchObject({ outcome: "completed" });
  });

  test("[B104] [S-047] a record that does not fit fails the run; after space is freed the session goes on", async () => {
    const project = await faultProject();
    const disk = mountSmallDisk(MIB);
    const filler = join(disk, "filler");
    const run = startOffline(
      project,
      [
        bashLine(`echo ran >> marks; head -c 2000000 /dev/zero > ${filler}`),
        ...Array.from({ length: 20 }, () => ["---", bashLine(`: ${"x".repeat(4000)}`)]).flat(),
      ],
      ["--data-dir", disk],
    );
    expect(await run.result).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/^error: the storage of session .* failed \(ENOSPC.*\).*\n$/),
    });
    const log = await logOn(disk);
    const before = completeBytes(log);
    const resume = ["--data-dir", disk, "--resume-session", sessionOf(log)];
    const tooEarly = await startOffline(project, ["say hello"], resume).result;
    expect(tooEarly).toMatchObject({ exitCode: 5, stdout: "", stderr: expect.stringContaining("ENOSPC") });

    await rm(filler);
    const shown = await start(project, ["session", "show", "--data-dir", disk, sessionOf(log)]).result;
    expect(shown).toMatchObject({ exitCode: 0, stdout: expect.not.stringContaining("unreadable") });
    const resumed = await startOffline(project, [bashLine("echo again >> marks")], resume).result;
    expect(resumed.exitCode).toBe(0);
    expect(completeBytes(log).subarray(0, before.byteLength).equals(before)).toBe(true);
    const events = await readLog(log);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(openEnds(events)).toEqual({ runs: [], calls: [] });
  });

  test("[B104] [S-047] [S-246] one kernel goes on by itself once space is there again", async () => {
    const project = await faultProject();
    const disk = mountSmallDisk(MIB);
    const client = await openClient(project, disk);
    const { session } = await client.request(SessionCreate, { selection: OFFLINE });
    const filler = join(disk, "filler");
    const talk = async (input: string) => {
      const { run_id } = await client.request(RunStart, {
        session_id: session.session_id,
        client_run_id: `run-${input.length}`,
        selection: OFFLINE,
        input,
      });
      for await (const news of client.subscribe(session.session_id)) {
        if (news.type !== "event" || news.event.run_id !== run_id) continue;
        const { payload } = news.event;
        if (payload.type === "run_completed") return payload.final_text;
      }
      return undefined;
    };
    expect(await talk("say one")).toBe("one");
    await fill(filler);
    const tail = completeBytes(await logOn(disk));
    await expect(exhaust(talk)).rejects.toMatchObject({
      code: "storage_failed",
      message: expect.stringContaining("ENOSPC"),
    });
    await rm(filler);
    expect(await talk("say three")).toBe("three");
    const log = await logOn(disk);
    expect(completeBytes(log).subarray(0, tail.byteLength).equals(tail)).toBe(true);
    const events = await readLog(log);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(openEnds(events)).toEqual({ runs: [], calls: [] });
  });
});

/** Writes until nothing more fits. */
async function fill(file: string): Promise<void> {
  await writeFile(file, Buffer.alloc(2 * MIB)).catch(() => undefined);
}

/** Speaks until the rest of the log's last page is used up as well. */
async function exhaust(talk: (input: string) => Promise<unknown>): Promise<void> {
  for (let length = 0; length < 50; length += 1) await talk(`say ${"x".repeat(1000 + length)}`);
}

async function openClient(project: TempProject, dataDir: string): Promise<CookieClient> {
  const kernel = await openKernel({
    cwd: project.cwd,
    homeDir: project.home,
    env: { HOME: project.home, PATH: process.env["PATH"] },
    dataDir,
    firstPartyDirectories: ["fs", "bash"].map((name) =>
      dirname(require.resolve(`@cookie-agent/plugin-${name}/cookie-plugin.json`)),
    ),
    hostEntry: require.resolve("@cookie-agent/sdk/host"),
    trust: "stored",
    headless: true,
    engineVersion: "0.0.0-test",
  });
  const client = await CookieClient.connect(kernel.connect());
  onTestFinished(async () => {
    client.close();
    await kernel.close();
  });
  return client;
}
