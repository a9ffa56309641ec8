import { describe, expect, onTestFinished, test } from "vitest";
import { type ModelServer, providerToml, startModelServer } from "../../support/model-server.ts";
import { jsonLines, runCookie } from "../../support/run-cookie.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const PRICES = `
[pricing.models."custom.test/scripted"]
input_per_million_usd = "2"
output_per_million_usd = "10"
`;
const UNTITLED = "[session_title]\ngenerate_on_first_turn = false\n";
const answer = { text: "done", usage: { input: 1_000_000, output: 1000 } };

async function useModel(config: string): Promise<{ project: TempProject; server: ModelServer }> {
  const project = await useProject();
  const server = await startModelServer();
  onTestFinished(() => server.close());
  server.otherwise(answer);
  // No answer fills the context: a summary would be a request more.
  const provider = providerToml(server, { contextTokens: 100_000_000 });
  await project.writeState("config.toml", `${provider}\n${UNTITLED}\n${config}`);
  return { project, server };
}

async function runOnce(project: Pick<TempProject, "home" | "cwd">): Promise<string> {
  const { stdout } = await runCookie(project, ["run", "--json", "hello"]);
  return String(jsonLines(stdout).at(-1)?.["session_id"]);
}

const UTC = { env: { TZ: "UTC", LANG: "C.UTF-8" } };

describe("cookie usage", () => {
  test("tells tokens and cost by day and model, of all projects or of this one", async () => {
    const { project } = await useModel(PRICES);
    await project.write("../other/file", "");
    const other = { home: project.home, cwd: `${project.cwd}/../other` };
    const empty = await runCookie(project, ["usage"], UTC);
    await runOnce(project);
    await runOnce(other);

    const all = await runCookie(project, ["usage"], UTC);
    const here = await runCookie(project, ["usage", "--here", "--json"], UTC);

    expect(empty).toMatchObject({ exitCode: 0, stdout: "nothing was used\n" });
    expect(all).toMatchObject({ exitCode: 0, stderr: "" });
    expect(all.stdout).toMatch(/^[\d-]{10} {2}custom\.test\/scripted +2 +2\.0M +2000 .* \$4\.02$/m);
    expect(all.stdout).toMatch(/^[\d-]{10} {2}\$4\.02 {2}█+$/m);
    expect(JSON.parse(here.stdout)).toMatchObject({
      time_zone: "UTC",
      usage: { request_count: 1, estimated_cost_usd: 2.01 },
      session_count: 1,
      days: [{ day: expect.stringMatching(/^[\d-]{10}$/) as string }],
      diagnostics: [],
    });
  });

  test("of one session, one agent, one model, some days", async () => {
    const { project } = await useModel(PRICES);
    const id = await runOnce(project);
    await runOnce(project);
    const count = async (...flags: string[]) => {
      const { stdout } = await runCookie(project, ["usage", "--json", ...flags], UTC);
      return (JSON.parse(stdout) as { usage: { request_count: number } }).usage.request_count;
    };

    expect(await count("--session", id)).toBe(1);
    expect(await count("--agent", "nobody")).toBe(0);
    expect(await count("--model", "custom.test/scripted")).toBe(2);
    expect(await count("--days", "1")).toBe(2);
    expect(await count("--since", "2999-01-01")).toBe(0);
  });

  test("a price that is not known is called so, and never shown as a number", async () => {
    const { project } = await useModel("");
    await runOnce(project);

    const { stdout } = await runCookie(project, ["usage"], { env: { TZ: "UTC" } });

    expect(stdout).toMatch(/ unknown$/m);
    expect(stdout).not.toContain("$");
    expect(stdout).toContain("tokens per day (not every price is known)");
    expect(stdout).toContain("the price of some requests is not known: custom.test/scripted");
    expect(stdout).toMatch(/^[\n -~]*$/);
  });

  test.for([
    [["--days", "0"], "--days"],
    [["--days", "2", "--since", "2026-01-01"], "exclude each other"],
    [["--since", "yesterday"], "write it as YYYY-MM-DD"],
    [["--since", "2026-02-30"], "there is no day 2026-02-30"],
    [["--model", "nonsense"], "write it as provider/model"],
    [["--agent", "No Body"], "--agent"],
  ] as const)("%j is a usage error", async ([flags, message]) => {
    const result = await runCookie(await useProject(), ["usage", ...flags]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(message);
  });

  test("a session that is nowhere is an error", async () => {
    const id = "01a22c7f-aff6-7000-aae4-2b4d70f8089d";
    const result = await runCookie(await useProject(), ["usage", "--session", id]);
    expect(result).toMatchObject({ exitCode: 1, stderr: `error: there is no session ${id}\n` });
  });
});

describe("cookie run with a budget", () => {
  test("[C-223] that is used up ends with 4 and says which", async () => {
    const { project, server } = await useModel("[budget]\nmax_turns = 1\n");
    const id = await runOnce(project);

    const result = await runCookie(project, ["run", "--json", "--resume-session", id, "more"]);

    expect(result.exitCode).toBe(4);
    expect(result.stderr).toContain("the session has used up budget.max_turns");
    expect(jsonLines(result.stdout).at(-1)).toMatchObject({
      type: "summary",
      status: "cancelled",
      turns: 0,
      exit_code: 4,
    });
    expect(server.requests).toHaveLength(1);
  });

  test("tells without --verbose that a price is missing for it", async () => {
    const { project } = await useModel('[budget]\nmax_cost_usd = "1"\n');
    const result = await runCookie(project, ["run", "hello"]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
    expect(result.stderr).toContain("budget.max_cost_usd does not limit custom.test/scripted");
  });
});
