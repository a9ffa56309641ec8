import { expect, onTestFinished, test } from "vitest";
import { boundedModel } from "../../support/bounded-model.ts";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { jsonLines, runCookie, runScript } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

test("[S-224] cookie session compact summarizes a session of the offline model, and show tells of it", async () => {
  const project = await useProject();
  await project.write("notes.txt", "a line\n".repeat(500));
  const script = 'call read {"filePath":"notes.txt"}';
  const { stdout } = await runScript(project, script, ["--json"]);
  const id = String(jsonLines(stdout).at(-1)?.["session_id"]);

  const compacted = await runCookie(project, ["session", "compact", id, "--focus", "the lines"]);
  const again = await runCookie(project, ["session", "compact", id, "--json"]);
  const shown = await runCookie(project, ["session", "show", id]);
  const next = await runCookie(project, [
    "run",
    "--model",
    "offline/script",
    "--resume-session",
    id,
    "say still here",
  ]);

  expect(compacted).toMatchObject({ exitCode: 0, stdout: "summarized\n", stderr: "" });
  expect(JSON.parse(again.stdout)).toMatchObject({ session_id: id });
  expect(shown.stdout).toMatch(/summary +of the conversation so far: \d+ to \d+ tokens/);
  expect(shown.stdout).toMatch(/files +notes\.txt/);
  expect(next.stdout).toContain("still here");
});

test("cookie session compact says what keeps it from summarizing", async () => {
  const project = await useProject();
  const { stdout } = await runScript(project, "say hi", ["--json"]);
  const id = String(jsonLines(stdout).at(-1)?.["session_id"]);

  const short = await runCookie(project, ["session", "compact", id]);
  const json = await runCookie(project, ["session", "compact", id, "--json"]);
  const unknown = await runCookie(project, ["session", "compact", "nonsense"]);

  expect(short).toMatchObject({ exitCode: 1, stdout: "" });
  expect(short.stderr).toContain("not summarized: ");
  expect(json.exitCode).toBe(1);
  expect(JSON.parse(json.stdout)).toMatchObject({ compacted: false });
  expect(unknown.exitCode).not.toBe(0);
  expect(unknown.stderr).toContain("cookie session list");
});

test("[S-223] cookie run says when a conversation is too long and cannot be summarized", async () => {
  const project = await useProject();
  const server = await startModelServer();
  onTestFinished(() => server.close());
  const config = providerToml(server, { contextTokens: 8000 });
  await project.writeState("config.toml", config);
  await project.write("notes.txt", "one of many lines\n".repeat(600));
  const calls = [{ name: "read", arguments: { filePath: "notes.txt" } }];
  const model = boundedModel({
    limitTokens: 1_000_000,
    turn: (count) => (count < 7 ? { calls } : { text: "done" }),
    summary: () => ({ status: 401, body: { error: { message: "no" } } }),
  });
  server.otherwise(model.answer);

  const run = ["run", "-m", "custom.test/scripted", "Read my notes."];
  const result = await runCookie(project, run);

  expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
  expect(result.stderr).toMatch(/the next request has about \d+ tokens, and the model takes 8000/);
  expect(result.stderr).toMatch(/after 3 attempts .*cookie session compact/);
});
