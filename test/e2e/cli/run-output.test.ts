import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { jsonLines, runCookie, runScript } from "../../support/run-cookie.ts";
import { readOnlyLog } from "../../support/session-log.ts";
import { useProject } from "../../support/use-project.ts";

describe("the output of cookie run", () => {
  test("[C-224] [C-226] text is the final text and one newline, and stderr stays empty", async () => {
    const project = await useProject();
    await project.write("notes.txt", "a note");

    const result = await runScript(
      project,
      'say first\ncall read {"filePath":"notes.txt"}\n---\nsay last',
    );

    expect(result).toMatchObject({ exitCode: 0, stdout: "last\n", stderr: "" });
  });

  test("[C-224] none prints nothing at all", async () => {
    const result = await runScript(await useProject(), "say hi", ["-o", "none"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
  });

  test("[C-224] --verbose tells each step on stderr, without escape codes", async () => {
    const project = await useProject();
    await project.write("notes.txt", "a note");

    const result = await runScript(project, 'call read {"filePath":"notes.txt"}\n---\nsay done', [
      "--verbose",
    ]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
    const lines = result.stderr.trimEnd().split("\n");
    expect(lines).toContain("cookie run: run started with agent default, model offline/script");
    expect(lines).toContain("cookie run: read notes.txt");
    expect(lines.filter((line) => !line.startsWith("cookie run: "))).toEqual([]);
    expect(result.stderr).not.toContain("\u001B");
  });

  test("[C-225] json is every event of the run in order, then the summary", async () => {
    const project = await useProject();
    await project.write("notes.txt", "a note");

    const result = await runScript(project, 'call read {"filePath":"notes.txt"}\n---\nsay done', [
      "-ojson",
    ]);

    const lines = jsonLines(result.stdout);
    const logged = (await readOnlyLog(project)).filter((event) => event.run_id !== null);
    expect(lines.slice(0, -1)).toEqual(logged.map((event) => ({ type: "event", event })));
    expect(lines.at(-1)).toEqual({
      type: "summary",
      session_id: logged[0]?.session_id,
      run_id: logged[0]?.run_id,
      status: "completed",
      exit_code: 0,
      turns: 2,
      approval_rejections: 0,
      event_recoveries: 0,
      cancellation: null,
      final_text: "done",
      usage: expect.objectContaining({ request_count: 2 }),
      error: null,
    });
  });

  test("[C-225] the usage of the summary adds up what the provider reported", async () => {
    const project = await useProject();
    const server = await startModelServer(
      {
        calls: [{ name: "read", arguments: { filePath: "." } }],
        usage: { input: 100, output: 10, cacheRead: 50, reasoning: 4 },
      },
      { text: "done", usage: { input: 300, output: 20, cacheRead: 150, reasoning: 0 } },
    );
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const result = await runCookie(project, ["run", "--json", "look"]);

    const usage = {
      input_tokens: 400,
      output_tokens: 30,
      reasoning_tokens: 4,
      cache_read_tokens: 200,
      cache_write_tokens: 0,
      request_count: 2,
      cache_hit_rate: 0.5,
      estimated_cost_usd: null,
    };
    expect(jsonLines(result.stdout).at(-1)).toMatchObject({
      type: "summary",
      final_text: "done",
      usage: { ...usage, by_model: { "custom.test/scripted": usage } },
    });
  });

  test("[C-225] verbose json follows the output of a running call", async () => {
    const result = await runScript(await useProject(), 'call bash {"command":"echo live"}', [
      "--json",
      "--verbose",
    ]);

    const output = jsonLines(result.stdout).filter(({ type }) => type === "tool_output");
    expect(output[0]).toEqual({
      type: "tool_output",
      call_id: expect.any(String),
      stream: expect.any(String),
      byte_offset: 0,
      data: Buffer.from("live\n").toString("base64"),
    });
  });

  test("--output-file takes the output, and stdout stays empty", async () => {
    const project = await useProject();

    const result = await runScript(project, "say hi", ["--output-file", "out.txt"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    expect(await readFile(join(project.cwd, "out.txt"), "utf8")).toBe("hi\n");
  });

  test("[C-226] a failed run ends with 1, one line on stderr and no text", async () => {
    const project = await useProject();
    const server = await startModelServer({ status: 401, body: { error: { message: "bad key" } } });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server, { apiKey: "key-of-the-test" }));

    const result = await runCookie(project, ["run", "hello"]);

    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/^error: [^\n]+\n$/);
    expect(result.stderr).not.toContain("key-of-the-test");
  });

  test("[C-224] a model fallback is reported on stderr without --verbose", async () => {
    const project = await useProject();
    const server = await startModelServer({ status: 401, body: { error: { message: "bad key" } } });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));
    await project.writeState(
      "agents/primary.md",
      `---
description: falls back
mode: primary
enabled: true
models:
  - model: custom.test/scripted
  - model: offline/script
permissions:
  read: allow
---
Answer.
`,
    );

    const result = await runCookie(project, ["run", "say hi"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(result.stderr).toMatch(
      /^cookie run: model custom\.test\/scripted failed \([^\n]+\); going on with offline\/script\n$/,
    );
  });

  test("control characters of the model reach a pipe as they are, but no error line", async () => {
    const project = await useProject();
    const server = await startModelServer(
      { text: "red \u001B[31m" },
      { status: 400, body: { error: { message: "bad \u001B]0;title\u0007 request\nnext" } } },
    );
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const good = await runCookie(project, ["run", "hello"]);
    const bad = await runCookie(project, ["run", "hello"]);

    expect(good.stdout).toBe("red \u001B[31m\n");
    expect(bad.exitCode).toBe(1);
    expect(bad.stderr).toMatch(/^error: [^\p{Cc}]+\n$/u);
  });
});
