import { expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer, type Wire } from "../../support/model-server.ts";
import { runCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

/** Tells, as the last line of stderr, whether the process has loaded the runtime's `fetch`. */
const REPORT = `process.on("exit", () => {
  const loaded = process.moduleLoadList.some((name) => name.includes("undici"));
  process.stderr.write("fetch loaded: " + loaded + "\\n");
})`;

test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
  "a run over %s does not load the runtime's fetch, which costs more than all else at its start",
  async (wire) => {
    const project = await useProject();
    const server = await startModelServer({ text: "hello" });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server, { wire }));

    const run = await runCookie(project, ["run", "hi"], {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(REPORT)}` },
    });

    expect(run).toEqual({
      exitCode: 0,
      signal: null,
      stdout: "hello\n",
      stderr: "fetch loaded: false\n",
    });
  },
);
