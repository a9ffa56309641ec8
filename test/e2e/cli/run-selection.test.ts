import { describe, expect, onTestFinished, test } from "vitest";
import { type ModelServer, providerToml, startModelServer } from "../../support/model-server.ts";
import { jsonLines, runCookie } from "../../support/run-cookie.ts";
import { findLogs, payloadsOf, readOnlyLog } from "../../support/session-log.ts";
import { useProject } from "../../support/use-project.ts";

async function useServer(): Promise<ModelServer> {
  const server = await startModelServer();
  server.otherwise({ text: "from the server" });
  onTestFinished(() => server.close());
  return server;
}

function agent(mode: string, models: readonly string[], enabled = true): string {
  const chain = models.map((model) => `\n  - model: ${model}`).join("");
  return `---
description: an agent of the test
mode: ${mode}
enabled: ${enabled}
models:${chain === "" ? " []" : chain}
permissions:
  read: allow
---
Do it.
`;
}

describe("the selection of cookie run", () => {
  test("[C-220] [C-090] without flags the built-in agent takes the first available model", async () => {
    const project = await useProject();
    const server = await useServer();
    await project.writeState("config.toml", providerToml(server));

    const result = await runCookie(project, ["run", "hello"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "from the server\n", stderr: "" });
    const [started] = payloadsOf(await readOnlyLog(project), "run_started");
    expect(started?.selection).toEqual({
      agent: "default",
      model: { model: "custom.test/scripted", variant: null },
    });
  });

  test("[C-220] [C-251] the offline model answers only when selected", async () => {
    const project = await useProject();

    const unselected = await runCookie(project, ["run", "hello"]);
    const selected = await runCookie(project, ["run", "-m", "offline/script", "say hi"]);

    expect(unselected).toMatchObject({ exitCode: 5, stdout: "" });
    expect(unselected.stderr).toContain("no model is configured");
    expect(unselected.stderr).toContain("-m offline/script");
    expect(selected).toMatchObject({ exitCode: 0, stdout: "hi\n" });
  });

  test("[C-220] the agent primary comes before others, and the first live model of its chain runs", async () => {
    const project = await useProject();
    const server = await useServer();
    await project.writeState("config.toml", providerToml(server));
    await project.writeState("agents/another.md", agent("all", ["custom.test/scripted"]));
    await project.writeState(
      "agents/primary.md",
      agent("primary", ["custom.gone/x", "offline/script"]),
    );

    const result = await runCookie(project, ["run", "say hi"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    const [started] = payloadsOf(await readOnlyLog(project), "run_started");
    expect(started?.selection).toEqual({
      agent: "primary",
      model: { model: "offline/script", variant: null },
    });
  });

  test.for([
    [
      ["-m", "offline/other", "hi"],
      "model offline/other is not available; available models: offline/script",
    ],
    [["-m", "nonsense", "hi"], "model nonsense is not available; available models: offline/script"],
    [
      ["-m", "offline/script", "--variant", "fast", "hi"],
      "variant fast of model offline/script is not available; available variants: base",
    ],
    [
      ["-m", "offline/script", "-a", "nobody", "hi"],
      "agent nobody is not available; available agents: default, stranded",
    ],
    [
      ["-m", "offline/script", "-a", "explore", "hi"],
      "agent explore is not available; available agents: default, stranded",
    ],
    [
      ["-m", "offline/script", "-a", "sleeping", "hi"],
      "agent sleeping is not available; available agents: default, stranded",
    ],
    [["-a", "stranded", "hi"], "agent stranded is not available; there are no agents that can run"],
    [
      ["-m", "offline/script", "--resume-session", "nonsense", "hi"],
      '--resume-session: "nonsense" is no session id; `cookie session list` shows the ids',
    ],
  ] as const)("[C-220] [C-226] %j ends with 5 and no session", async ([args, message]) => {
    const project = await useProject();
    await project.writeState("agents/sleeping.md", agent("primary", ["offline/script"], false));
    await project.writeState("agents/stranded.md", agent("primary", ["custom.gone/x"]));

    const result = await runCookie(project, ["run", ...args]);

    expect(result).toMatchObject({ exitCode: 5, stdout: "", stderr: `error: ${message}\n` });
    expect(await findLogs(project)).toEqual([]);
  });

  test("[C-220] a resumed session goes on with its own model unless a flag says otherwise", async () => {
    const project = await useProject();
    const server = await useServer();
    await project.writeState("config.toml", providerToml(server));
    const first = await runCookie(project, ["run", "-ojson", "-m", "offline/script", "say one"]);
    const id = String(jsonLines(first.stdout).at(-1)?.["session_id"]);

    const second = await runCookie(project, ["run", "--resume-session", id, "say two"]);
    const third = await runCookie(project, [
      "run",
      "--resume-session",
      id,
      "-m",
      "custom.test/scripted",
      "three",
    ]);

    expect(second).toMatchObject({ exitCode: 0, stdout: "two\n" });
    expect(third).toMatchObject({ exitCode: 0, stdout: "from the server\n" });
    const log = await readOnlyLog(project);
    expect(payloadsOf(log, "run_completed").map((end) => end.final_text)).toEqual([
      "one",
      "two",
      "from the server",
    ]);
    const body = server.requests[0]?.body as { messages: object[] } | undefined;
    expect(body?.messages).toMatchObject([
      { role: "system" },
      { role: "user", content: "say one" },
      { role: "assistant", content: "one" },
      { role: "user", content: "say two" },
      { role: "assistant", content: "two" },
      { role: "user", content: "three" },
    ]);
  });

  test("[C-220] a resumed session whose model is gone takes the agent's default model", async () => {
    const project = await useProject();
    const server = await useServer();
    await project.writeState("config.toml", providerToml(server, { name: "old" }));
    const first = await runCookie(project, ["run", "--json", "one"]);
    const id = String(jsonLines(first.stdout).at(-1)?.["session_id"]);
    await project.writeState("config.toml", providerToml(server, { name: "new" }));

    const second = await runCookie(project, ["run", "--resume-session", id, "two"]);

    expect(second).toMatchObject({ exitCode: 0, stdout: "from the server\n" });
    const models = payloadsOf(await readOnlyLog(project), "run_started").map(
      ({ selection }) => selection.model.model,
    );
    expect(models).toEqual(["custom.old/scripted", "custom.new/scripted"]);
  });

  test("[C-227] --data-dir moves only the sessions", async () => {
    const project = await useProject();
    const server = await useServer();
    await project.writeState("config.toml", providerToml(server));

    const result = await runCookie(project, ["run", "--data-dir", "elsewhere", "hello"]);
    const here = await runCookie(project, ["session", "list", "--json"]);
    const there = await runCookie(project, [
      "session",
      "list",
      "--json",
      "--data-dir",
      "elsewhere",
    ]);

    expect(result).toMatchObject({ exitCode: 0, stdout: "from the server\n" });
    expect(JSON.parse(here.stdout)).toEqual({ sessions: [], diagnostics: [] });
    expect(JSON.parse(there.stdout)).toMatchObject({ sessions: [{ status: "completed" }] });
  });
});
