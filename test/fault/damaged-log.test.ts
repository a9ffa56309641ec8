import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { jsonLines } from "../support/run-cookie.ts";
import type { TempProject } from "../support/temp-project.ts";
import { bashLine, faultProject, start, startOffline } from "./support/fault-project.ts";
import { onlyLog, sessionOf } from "./support/log-lines.ts";

interface Shown {
  readonly session: { readonly skipped_events: { seq?: number; line?: number; reason: string }[] };
  readonly events: { readonly seq: number; readonly timestamp: string }[];
}

/** A finished session and its log, cut into lines with their newlines. */
async function finishedSession(project: TempProject): Promise<{ log: string; lines: Buffer[] }> {
  const run = startOffline(project, [
    bashLine("echo one"),
    "---",
    bashLine("echo two"),
    "---",
    "say done",
  ]);
  expect((await run.result).exitCode).toBe(0);
  const log = (await onlyLog(project)) ?? "";
  const lines = (await readFile(log, "utf8")).split(/(?<=\n)/).map((line) => Buffer.from(line));
  expect(lines.length).toBeGreaterThan(20);
  return { log, lines };
}

async function show(project: TempProject, log: string): Promise<Shown> {
  const shown = await start(project, ["session", "show", "--json", sessionOf(log)]).result;
  expect(shown).toMatchObject({ exitCode: 0, stderr: "" });
  const [answer] = jsonLines(shown.stdout);
  return answer as unknown as Shown;
}

const half = (line: Buffer) => line.subarray(0, Math.floor(line.byteLength / 2));
const newline = Buffer.from("\n");

/** The twelfth line or the last is damaged; `missing` are the events that are lost. */
const damages: readonly {
  name: string;
  damage(lines: readonly Buffer[]): Buffer[];
  missing: (last: number) => number[];
  /** Parts of what is reported of a damage that begins at `offset`. */
  reports: (offset: number) => string[];
}[] = [
  {
    name: "[B097] 400 NUL bytes as a line of their own",
    damage: (lines) => [...lines.slice(0, 11), Buffer.alloc(400), newline, ...lines.slice(11)],
    missing: () => [],
    reports: (offset) => [`400 NUL bytes in the line at byte ${offset}`],
  },
  {
    name: "[B098] a line cut in its middle",
    damage: (lines) => [
      ...lines.slice(0, 11),
      half(lines[11] ?? newline),
      newline,
      ...lines.slice(12),
    ],
    missing: () => [12],
    reports: (offset) => [`(line at byte ${offset})`],
  },
  {
    name: "[B101] a partial record, then its full copy on the same and on the next line",
    damage: (lines) => {
      const line = lines[11] ?? newline;
      return [...lines.slice(0, 11), half(line), line, line, ...lines.slice(12)];
    },
    missing: () => [],
    reports: () => [],
  },
  {
    name: "[B110] [S-056] a torn record and a blank line at the end",
    damage: (lines) => [...lines.slice(0, -1), half(lines.at(-1) ?? newline), newline, newline],
    missing: (last) => [last],
    reports: () => [],
  },
  {
    name: "[S-056] a torn record at the end",
    damage: (lines) => [...lines.slice(0, -1), half(lines.at(-1) ?? newline)],
    missing: (last) => [last],
    reports: () => [],
  },
];

describe("a log that was damaged on disk", () => {
  test.for(damages)(
    "[damaged log: opening, append] $name: the rest is shown and the session goes on",
    async (damage) => {
      const project = await faultProject();
      const { log, lines } = await finishedSession(project);
      const missing = damage.missing(lines.length);
      const kept = lines.map((_, index) => index + 1).filter((seq) => !missing.includes(seq));
      const bytes = Buffer.concat(damage.damage(lines));
      await writeFile(log, bytes);

      const shown = await show(project, log);
      expect(shown.events.map(({ seq }) => seq)).toEqual(kept);
      const reasons = shown.session.skipped_events.map(({ reason }) => reason);
      const offset = Buffer.concat(lines.slice(0, 11)).byteLength;
      expect(reasons).toEqual(
        damage.reports(offset).map((part): unknown => expect.stringContaining(part)),
      );
      expect(await readFile(log)).toEqual(bytes);

      const resumed = await startOffline(
        project,
        ["say more"],
        ["--resume-session", sessionOf(log)],
      ).result;
      expect(resumed).toMatchObject({ exitCode: 0, stdout: "more\n", stderr: "" });
      const after = await show(project, log);
      expect(after.events.map(({ seq }) => seq).slice(0, kept.length)).toEqual(kept);
      expect(after.session.skipped_events).toEqual(shown.session.skipped_events);
      expect(after.events.length).toBeGreaterThan(kept.length);
      const listed = await start(project, ["session", "list", "--json"]).result;
      expect(listed.stdout).toContain(`"last_activity":"${after.events.at(-1)?.timestamp}"`);
    },
  );
});
