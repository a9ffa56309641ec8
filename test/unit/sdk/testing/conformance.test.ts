import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConformanceReport, runConformance } from "@cookie-agent/sdk/testing";
import { expect, onTestFinished, test } from "vitest";

const REPOSITORY = join(import.meta.dirname, "../../../..");
const FIXTURE = join(REPOSITORY, "test/fixtures/conformance/plugin.mjs");
const HOST = join(REPOSITORY, "sdk/dist/host.js");
/** Short, because a fault may be silence; a wait that ends with an answer does not take it. */
const LIMITS = { answerMs: 3000, cancelMs: 3000, leaveMs: 3000 };

/** Each fault of the fixture, and the one check that finds it. */
const FAULTS = [
  ["C-01", "blank_line"],
  ["C-01", "splits_characters"],
  ["C-01", "short_lines"],
  ["C-01", "drops_last_line"],
  ["C-02", "truthy_id"],
  ["C-02", "number_ids"],
  ["C-02", "knows_everything"],
  ["C-03", "console_log"],
  ["C-03", "early_frame"],
  ["C-04", "parrots_version"],
  ["C-04", "other_name"],
  ["C-04", "more_capabilities"],
  ["C-05", "changed_tool"],
  ["C-07", "needs_environment"],
  ["C-07", "needs_unnamed"],
  ["C-08", "stays"],
  ["C-08", "no_ping_when_busy"],
  ["C-08", "orphan"],
  ["C-13", "effect_of_preparation"],
  ["C-13", "unstable_label"],
  ["C-13", "reusable_token"],
  ["C-13", "blind_call"],
  ["C-14", "undeclared_stream"],
  ["C-14", "text_after_stream"],
  ["C-14", "late_output"],
  ["C-14", "raw_unannounced"],
  ["C-15", "loses_output"],
  ["C-16", "wrong_cancel_code"],
  ["C-16", "leaves_child"],
  ["C-16", "fears_late_cancel"],
  ["C-16", "waits_for_input"],
  ["C-16", "waits_for_room"],
  ["C-17", "accepts_after_eof"],
  ["C-20", "bad_dynamic_tool"],
  ["C-20", "bad_claim"],
  ["C-22", "made_up_context"],
  ["C-22", "emits_twice"],
  ["C-23", "hook_without_action"],
  ["C-23", "silent_hook"],
] as const;

test.concurrent.for(FAULTS)(
  "[E-190] only %s finds the fault %s",
  async ([check, fault], { expect, onTestFinished }) => {
    const directory = await makeDirectory(onTestFinished);
    const report = await tryFixture(directory, fault);
    expect(failures(report)).toEqual([check]);
    const reason = report.results.find((result) => result.check === check)?.reason ?? "";
    expect(reason).toMatch(/^the plugin .*; (?:it must )?\S/);
  },
);

test("[E-190] a plugin that conforms passes every check, and each names its requirements", async () => {
  const report = await tryFixture(await makeDirectory(), "none");
  expect(report.results.map(({ check, outcome, reason }) => [check, outcome, reason])).toEqual(
    [1, 2, 3, 4, 5, 7, 8, 13, 14, 15, 16, 17, 20, 22, 23].map((number) => [
      `C-${String(number).padStart(2, "0")}`,
      "passed",
      null,
    ]),
  );
  for (const { ids } of report.results) expect(ids.join()).toMatch(/^(?:E-\d{3},?)+$/);
});

test("[E-103] [E-190] behind `ch` the kit finds a plugin that overruns its window", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "node", entry: "plugin.mjs", group: "kit" });
  const run = (fault: string) =>
    runConformance(
      { directory },
      { limits: LIMITS, hostEntry: HOST, only: ["C-15"], samples: { env: { FAULT: fault } } },
    );
  const behind = ({ results }: ConformanceReport) => results.find(({ run }) => run === "behind_ch");
  expect(behind(await run("none"))).toMatchObject({ outcome: "passed" });
  expect(behind(await run("overruns_window"))).toMatchObject({
    outcome: "failed",
    reason: expect.stringContaining("without an acknowledgement") as string,
  });
});

test("[E-190] a plugin that takes over its thread is reported and ended, with all that it started", async () => {
  const report = await tryFixture(await makeDirectory(), "blocks");
  expect(failures(report)).toContain("C-16");
});

test.skipIf(process.platform === "win32").for([
  ["a folder", "mkdir", "it is no regular file"],
  ["a pipe", "mkfifo", "it is no regular file"],
] as const)(
  "%s in the place of conformance.json is named, not taken for a plugin without calls",
  async ([, make, why]) => {
    const directory = await makeDirectory();
    await writeManifest(directory, { kind: "node", entry: "plugin.mjs" });
    await rm(join(directory, "conformance.json"));
    execFileSync(make, [join(directory, "conformance.json")]);
    await expect(runConformance({ directory }, {})).rejects.toMatchObject({
      code: "invalid_declaration",
      message: expect.stringContaining(why),
    });
  },
);

test("without conformance.json nothing is called", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "node", entry: "plugin.mjs" });
  await rm(join(directory, "conformance.json"));
  const { results } = await runConformance({ directory }, { limits: LIMITS });
  const skipped = results.filter(({ outcome }) => outcome === "skipped");
  expect(skipped.map(({ check }) => check)).toEqual(
    expect.arrayContaining(["C-13", "C-14", "C-15", "C-16", "C-17"]),
  );
});

test("a program that is not installed skips everything and says so", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "exec", command: "./plugin.mjs" });
  const samples = { requires: ["no-such-program"] };
  const report = await runConformance({ directory }, { samples });
  expect(report.outcome).toBe("skipped");
  expect(new Set(report.results.map(({ reason }) => reason))).toEqual(
    new Set(["needs no-such-program, which is not installed"]),
  );
});

test("one that does not start is told so once", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "exec", command: "./missing" });
  const report = await runConformance({ directory });
  expect(failures(report)).toEqual(["C-04"]);
  expect(report.results.find(({ check }) => check === "C-04")?.reason).toContain("ENOENT");
});

test("one that ends at its start is told with its status and what it said last", async () => {
  const directory = await makeDirectory();
  const script = "null.leave; // no such module: left-pad";
  await writeManifest(directory, { kind: "exec", command: process.execPath, args: ["-e", script] });
  const { results } = await runConformance({ directory });
  const reason = results.find(({ outcome }) => outcome === "failed")?.reason ?? "";
  expect(reason).toContain("did not answer plugin/initialize: the plugin ended with exit code 1");
  expect(reason).toContain("no such module: left-pad");
  expect(reason).toContain("TypeError");
  expect(reason).not.toContain("    at ");
});

test("[E-004] an answer with another id is told, and not only that none came", async () => {
  const directory = await makeDirectory();
  const script = `process.stdin.on("data", () => console.log('{"jsonrpc":"2.0","id":7,"result":{}}'))`;
  await writeManifest(directory, { kind: "exec", command: process.execPath, args: ["-e", script] });
  const { results } = await runConformance({ directory }, { limits: { startMs: 1000 } });
  const reason = results.find(({ check }) => check === "C-04")?.reason ?? "";
  expect(reason).toContain("it answered 7, which was not asked, and must give back the id 0");
});

test("[E-021] [E-190] a manifest that lists other versions only does not conform", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "node", entry: "plugin.mjs" });
  const file = join(directory, "cookie-plugin.json");
  const manifest = await readFile(file, "utf8");
  await writeFile(file, manifest.replace('"protocol":["0.1.0"]', '"protocol":["9.0.0"]'));
  const report = await runConformance({ directory }, { only: ["C-04"] });
  expect(failures(report)).toEqual(["C-04"]);
  expect(report.results[0]?.reason).toContain("lists the protocol 9.0.0 in its manifest");
});

test("a sample of a tool that is not there fails instead of being passed over", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "node", entry: "plugin.mjs" });
  const samples = { calls: [{ tool: "streem", arguments: {} }] };
  const report = await runConformance({ directory }, { only: ["C-14"], samples });
  expect(failures(report)).toEqual(["C-14"]);
  expect(report.results[0]?.reason).toContain("has no tool streem");
});

test("a check that there is none of is refused, because it would find nothing", async () => {
  const directory = await makeDirectory();
  await writeManifest(directory, { kind: "node", entry: "plugin.mjs" });
  await expect(runConformance({ directory }, { only: ["C-99"] })).rejects.toMatchObject({
    code: "invalid_params",
    message: expect.stringContaining("C-01") as string,
  });
});

async function makeDirectory(atEnd: typeof onTestFinished = onTestFinished): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cookie-kit-"));
  atEnd(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function tryFixture(directory: string, fault: string): Promise<ConformanceReport> {
  await writeManifest(directory, {
    kind: "exec",
    command: process.execPath,
    args: [FIXTURE, fault],
  });
  return runConformance({ directory }, { limits: LIMITS });
}

async function writeManifest(directory: string, runtime: object): Promise<void> {
  await symlink(FIXTURE, join(directory, "plugin.mjs"));
  const tools: unknown = JSON.parse(
    await readFile(join(REPOSITORY, "test/fixtures/conformance/tools.json"), "utf8"),
  );
  const manifest = {
    manifest: 1,
    name: "every_check",
    version: "1.0.0",
    protocol: ["0.1.0"],
    runtime,
    env: { inherit: ["PATH"] },
    capabilities: {
      tools: true,
      dynamic_tools: true,
      subscribe_events: ["run_completed"],
      publish_bus: true,
      intercept: ["tool_before_call", "agent_before_start"],
    },
    tools,
  };
  const a = { "a.txt": "one" };
  const samples = {
    calls: [
      { tool: "stream", arguments: {} },
      { tool: "raw", arguments: {} },
      { tool: "replace", arguments: { text: "two" }, files: a },
    ],
    changed: [{ tool: "replace", arguments: { text: "two" }, files: a, change: { "a.txt": "x" } }],
    cancel: { tool: "wait", arguments: {} },
    stdin: { tool: "read_input", arguments: { interactive: true }, data: "typed" },
    flood: { tool: "flood", arguments: { bytes: 4_194_304 }, bytes: 4_194_304 },
  };
  await writeFile(join(directory, "cookie-plugin.json"), JSON.stringify(manifest));
  await writeFile(join(directory, "conformance.json"), JSON.stringify(samples));
}

function failures({ results }: ConformanceReport): string[] {
  return results.filter(({ outcome }) => outcome === "failed").map(({ check }) => check);
}
