import { cp, rename, symlink, truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { findLogs, parseLog, payloadsOf, readLog } from "../support/session-log.ts";
import { faultProject, start, startOffline } from "./support/fault-project.ts";
import { completeBytes, onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";

const ROUNDS = process.env["COOKIE_FAULT_RUNS"] === "all" ? 40 : 4;

describe("a store that several use, or that was put somewhere else", () => {
  test("[two processes: publication, append, metadata, recovery, opening] [S-070] [S-082] [S-085] round after round of racing runs each record is whole and of one writer", {
    timeout: 300_000,
  }, async () => {
    const project = await faultProject();
    const first = await Promise.all([1, 2].map(() => startOffline(project, ["say first"]).result));
    expect(first.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    const listed = await start(project, ["session", "list", "--json"]).result;
    const ids = [...listed.stdout.matchAll(/"session_id":"([^"]+)"/g)].map(([, id = ""]) => id);
    expect(new Set(ids).size).toBe(2);
    const [id = ""] = ids;
    let won = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const racers = [0, 1, 2].map(() =>
        startOffline(project, ["say mine"], ["--resume-session", id]),
      );
      // one of them dies at some moment of its start, whatever it is at
      if (round % 2 === 1) racers[0]?.child.kill("SIGKILL");
      const results = await Promise.all(racers.map(({ result }) => result));
      for (const { exitCode, signal } of results) {
        expect([0, 5, signal === null ? 0 : null]).toContain(exitCode);
      }
      won += results.filter(({ exitCode }) => exitCode === 0).length;
    }
    expect(won).toBeGreaterThanOrEqual(ROUNDS);
    const shown = await start(project, ["session", "show", "--json", id]).result;
    expect(shown.stdout).toContain('"skipped_events":[]');
    const log = join(await storeOf(project.stateDir, id), id, "events.jsonl");
    const events = await readLog(log);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(openEnds(events)).toEqual({ runs: [], calls: [] });
    expect(payloadsOf(events, "run_completed").length).toBeGreaterThanOrEqual(won + 1);
  });

  test("[moved store: opening, append, metadata, recovery] [S-056] [S-075] an older log under newer metadata, as a backup restores it, counts as it is", async () => {
    const project = await faultProject();
    await startOffline(project, ["say first"]).result;
    const log = (await onlyLog(project)) ?? "";
    const older = completeBytes(log);
    const resume = ["--resume-session", sessionOf(log)];
    await startOffline(project, ["say second"], resume).result;
    // in the middle of the second run's first line
    await truncate(log, older.byteLength + 40);

    const resumed = await startOffline(project, ["say third"], resume).result;
    expect(resumed).toMatchObject({ exitCode: 0, stdout: "third\n", stderr: "" });
    const events = await readLog(log);
    expect(completeBytes(log).subarray(0, older.byteLength).equals(older)).toBe(true);
    expect(events.slice(0, parseLog(older.toString()).length)).toEqual(parseLog(older.toString()));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(payloadsOf(events, "run_completed").map(({ final_text }) => final_text)).toEqual([
      "first",
      "third",
    ]);
    const listed = await start(project, ["session", "list", "--json"]).result;
    expect(listed.stdout).toContain(`"last_event_seq":${events.length}`);
  });

  test("[moved store: opening, append] a copy and its original go on each for itself", async () => {
    const project = await faultProject();
    await startOffline(project, ["say first"]).result;
    const log = (await onlyLog(project)) ?? "";
    const copy = join(project.home, "copy");
    await cp(join(project.stateDir, "sessions"), join(copy, "sessions"), { recursive: true });
    const resume = ["--resume-session", sessionOf(log)];
    await startOffline(project, ["say here"], resume).result;
    await startOffline(project, ["say there"], [...resume, "--data-dir", copy]).result;
    const texts = async (file: string) =>
      payloadsOf(await readLog(file), "run_completed").map(({ final_text }) => final_text);
    expect(await texts(log)).toEqual(["first", "here"]);
    expect(await texts((await onlyLog({ stateDir: copy })) ?? "")).toEqual(["first", "there"]);
  });

  test.skipIf(process.platform === "win32")(
    "[moved store: opening, append] a store behind a link is the same store",
    async () => {
      const project = await faultProject();
      await startOffline(project, ["say first"]).result;
      const log = (await onlyLog(project)) ?? "";
      const store = dirname(dirname(log));
      const elsewhere = join(project.home, basename(store));
      await rename(store, elsewhere);
      await symlink(elsewhere, store);
      const resumed = startOffline(project, ["say second"], ["--resume-session", sessionOf(log)]);
      expect(await resumed.result).toMatchObject({ exitCode: 0, stdout: "second\n", stderr: "" });
      expect(payloadsOf(await readLog(log), "run_completed")).toHaveLength(2);
    },
  );
});

async function storeOf(stateDir: string, sessionId: string): Promise<string> {
  const log = (await findLogs({ stateDir })).find((path) => path.includes(sessionId));
  return dirname(dirname(log ?? ""));
}
