import { LLMock } from "@copilotkit/aimock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { payloadsOf, readOnlyLog } from "../../support/session-log.ts";
import { createTempProject, type TempProject } from "../../support/temp-project.ts";

// A model server that others wrote, so that our reading of each wire is not proved by our own writing of it.
describe.for([
  ["openai-compatible", "/v1"],
  ["openai-chat", "/v1"],
  ["openai-responses", "/v1"],
  ["anthropic", "/v1"],
] as const)("a run over %s", ([adaptor, path]) => {
  let project: TempProject;
  let server: LLMock;

  beforeEach(async () => {
    project = await createTempProject();
    server = new LLMock({ port: 0 });
    server.on(
      { userMessage: "look", hasToolResult: false },
      { toolCalls: [{ name: "read", arguments: JSON.stringify({ filePath: "note.txt" }) }] },
    );
    server.on({ userMessage: "look", hasToolResult: true }, { content: "The note says hello." });
    await server.start();
    await project.write("note.txt", "hello\n");
    await project.writeState(
      "config.toml",
      [
        '[providers."custom.independent"]',
        `adaptor = "${adaptor}"`,
        `endpoint = "${server.url}${path}"`,
        'api_key = "k"',
        "models.m = {}",
        "",
      ].join("\n"),
    );
  });
  afterEach(async () => {
    await server.stop();
    await project.remove();
  });

  test("calls the tool that the model asked for and brings its result back", async () => {
    const run = await runCookie(project, ["run", "look at the note"]);
    expect(run).toMatchObject({ exitCode: 0, stdout: "The note says hello.\n", stderr: "" });
    const events = await readOnlyLog(project);
    expect(payloadsOf(events, "tool_call_terminated")).toMatchObject([
      { outcome: "completed", result: { output: expect.stringContaining("1: hello") } },
    ]);
    expect(
      payloadsOf(events, "model_turn_committed").map(({ turn }) => turn.finish_reason),
    ).toEqual(["tool_calls", "stop"]);
  });
});
