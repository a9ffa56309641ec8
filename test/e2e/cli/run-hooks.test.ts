import { expect, onTestFinished, test } from "vitest";
import { writeHookPlugins } from "../../support/hook-plugin.ts";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { runCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

test("[E-167] an input that a plugin has handled ends the command well and says why no model was asked", async () => {
  const project = await useProject();
  const server = await startModelServer({ text: "hello" });
  onTestFinished(() => server.close());
  await project.writeState("config.toml", providerToml(server));
  await writeHookPlugins(project, [
    {
      name: "shortcut",
      hooks: { user_before_input: () => ({ action: "handled", reason: "did it" }) },
    },
  ]);

  const run = await runCookie(project, ["run", "/do it"]);

  expect(run).toMatchObject({ exitCode: 0, stdout: "" });
  expect(run.stderr).toContain("shortcut: did it");
  expect(run.stderr).not.toContain("error");
  expect(server.requests).toEqual([]);
});

test("[E-204] a required plugin that fails ends the command with a failure of set-up", async () => {
  const project = await useProject();
  const server = await startModelServer({ text: "hello" });
  onTestFinished(() => server.close());
  await project.writeState("config.toml", providerToml(server));
  await writeHookPlugins(project, [
    {
      name: "guard",
      hooks: { user_before_input: (_facts, { crash }) => crash() },
      keys: "required = true",
    },
  ]);

  const run = await runCookie(project, ["run", "hi"]);

  expect(run).toMatchObject({ exitCode: 5, stdout: "" });
  expect(run.stderr).toContain("the required plugin guard failed at user_before_input");
});
