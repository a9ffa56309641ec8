import { readdirSync } from "node:fs";
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { jsonLines } from "../support/run-cookie.ts";
import { payloadsOf, readLog } from "../support/session-log.ts";
import { bashLine, faultProject, start, startOffline } from "./support/fault-project.ts";
import { onlyLog, sessionOf } from "./support/log-lines.ts";

describe("a store that changed while nobody used it", () => {
  test("[moved store: opening, append, artifact] sessions and their artifacts work from another path", async () => {
    const project = await faultProject();
    const [here, there] = [join(project.home, "here"), join(project.home, "there")];
    await startOffline(project, [bashLine("seq 1 5000")], ["--data-dir", here]).result;
    await rename(here, there);
    const log = (await onlyLog({ stateDir: there })) ?? "";
    const first = payloadsOf(await readLog(log), "tool_call_terminated")[0];
    const uri = String(first?.result?.retained_output?.reference);
    const resumed = await startOffline(
      project,
      [
        `call read ${JSON.stringify({ filePath: `${uri.replace("/sha256/", "/")}/stdout`, offset: 4999 })}`,
      ],
      ["--data-dir", there, "--resume-session", sessionOf(log)],
    ).result;
    expect(resumed).toMatchObject({ exitCode: 0, stderr: "" });
    const read = payloadsOf(await readLog(log), "tool_call_terminated")[1];
    expect(read).toMatchObject({
      outcome: "completed",
      result: { output: expect.stringContaining("5000") },
    });
    expect(readdirSync(project.home)).not.toContain("here");
  });

  test.for([
    ["empty", ""],
    ["cut", "{"],
    ["of another shape", '{"session_id":1}'],
    ["NUL bytes", "\0".repeat(512)],
  ] as const)(
    "[damaged log: metadata] [S-075] metadata that does not parse (%s) is rebuilt from the log",
    async ([, content]) => {
      const project = await faultProject();
      await startOffline(project, ["say hello"]).result;
      const log = (await onlyLog(project)) ?? "";
      const metadata = join(dirname(log), "metadata");
      const intact: unknown = JSON.parse(await readFile(metadata, "utf8"));
      await writeFile(metadata, content);

      const listed = await start(project, ["session", "list", "--json"]).result;
      expect(listed).toMatchObject({ exitCode: 0, stderr: "" });
      expect(listed.stdout).toContain(sessionOf(log));
      expect(JSON.stringify(jsonLines(listed.stdout))).toContain("say hello");
      expect(await readFile(metadata, "utf8")).toBe(content);

      const resume = ["--resume-session", sessionOf(log)];
      const resumed = await startOffline(project, ["say more"], resume).result;
      expect(resumed).toMatchObject({ exitCode: 0, stdout: "more\n", stderr: "" });
      const rebuilt: unknown = JSON.parse(await readFile(metadata, "utf8"));
      const { length } = await readLog(log);
      expect(rebuilt).toMatchObject({
        ...(intact as object),
        last_event_seq: length,
        last_activity: expect.any(String),
        usage: expect.objectContaining({ log_bytes: (await stat(log)).size }),
      });
    },
  );

  test("[clock jump: append] [S-037] timestamps do not go back when the clock does", async () => {
    const project = await faultProject();
    await startOffline(project, ["say hello"]).result;
    const log = (await onlyLog(project)) ?? "";
    const future = "2199-01-01T00:00:00.000Z";
    const text = await readFile(log, "utf8");
    await writeFile(log, text.replace(/"timestamp":"[^"]+"/g, `"timestamp":"${future}"`));
    const resume = ["--resume-session", sessionOf(log)];
    const resumed = await startOffline(project, ["say more"], resume).result;
    expect(resumed).toMatchObject({ exitCode: 0, stdout: "more\n", stderr: "" });
    const events = await readLog(log);
    expect(payloadsOf(events, "run_completed")).toHaveLength(2);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(new Set(events.map(({ timestamp }) => timestamp))).toEqual(new Set([future]));
  });
});
