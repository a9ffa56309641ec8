import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PluginStatus } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { openDaemon, type TestDaemon } from "../../support/open-daemon.ts";
import { SessionWatch } from "../../support/session-watch.ts";

const describeProcess = { name: "describe_process", arguments: {} };
const echo = (text: string) => ({ name: "echo", arguments: { text } });
const bash = (command: string) => ({ name: "bash", arguments: { command } });

async function changeConfig(
  { project }: TestDaemon,
  change: (config: string) => string,
): Promise<void> {
  const file = join(project.stateDir, "config.toml");
  await writeFile(file, change(await readFile(file, "utf8")));
}

async function reload(daemon: TestDaemon, plugin: string): Promise<PluginStatus> {
  const { stdout, stderr } = await daemon.cookie(["plugin", "reload", plugin, "--json"]);
  expect(stderr).toBe("");
  return (JSON.parse(stdout) as { plugin: PluginStatus }).plugin;
}

test("[E-064] [D-051] plugin reload takes the changed entry while the session goes on, and clients are told", async () => {
  const daemon = await openDaemon({
    config: fixturePlugin("echo", '[plugins.echo.config]\nmood = "calm"'),
    answers: [
      { calls: [describeProcess] },
      { text: "one" },
      { calls: [describeProcess] },
      { text: "two" },
    ],
  });
  const client = await daemon.connect();
  const first = await daemon.startRun(client, "One");
  const watch = new SessionWatch(client, first.sessionId);
  await watch.end(first.runId);

  await changeConfig(daemon, (config) => config.replace('"calm"', '"curious"'));
  const status = await daemon.cookie(["plugin", "reload", "echo"]);
  expect(status).toMatchObject({ exitCode: 0, stderr: "" });
  expect(status.stdout).toMatch(/^echo\n {2}state {5}connected\n/);

  const second = await daemon.startRun(client, "Two", { session: first.sessionId });
  await watch.end(second.runId);
  const seen = watch
    .payloads("tool_call_terminated")
    .map(({ result }) => JSON.parse(result?.output ?? "{}") as { pid: number });
  expect(seen.map((each) => pick(each, "introduction", "config", "mood"))).toEqual([
    "calm",
    "curious",
  ]);
  expect(seen[0]?.pid).not.toBe(seen[1]?.pid);
  expect(watch.types.filter((type) => type === "run_completed")).toHaveLength(2);
  const listed = await daemon.cookie(["plugin", "status", "echo", "--json"]);
  expect(JSON.parse(listed.stdout)).toMatchObject({
    plugins: [{ plugin: "echo", state: "connected", pid: seen[1]?.pid }],
  });
});

test("[E-064] a plugin that was added to the configuration joins a running daemon, one that was taken out ends", async () => {
  const daemon = await openDaemon({ answers: [{ calls: [echo("hello")] }, { text: "ok" }] });
  expect(await daemon.cookie(["plugin", "reload", "echo"])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^error: no plugin is called echo; there are builtin\.fs, /),
  });
  await changeConfig(daemon, (config) => `${config}\n${fixturePlugin("echo")}`);
  expect(await reload(daemon, "echo")).toMatchObject({ state: "connected" });
  const client = await daemon.connect();
  const { sessionId, runId } = await daemon.startRun(client, "Hi");
  const watch = new SessionWatch(client, sessionId);
  await watch.end(runId);
  expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toBe("hello");
  await changeConfig(daemon, (config) => config.slice(0, config.indexOf("[plugins.echo]")));
  expect(await reload(daemon, "echo")).toMatchObject({
    reason: "the configuration does not name it any more",
  });
  expect((await daemon.cookie(["plugin", "list"])).stdout).not.toContain("echo");
});

test("[B136] [E-064] [E-072] a reload that fails says why and lets no other implementation in", async () => {
  const daemon = await openDaemon({
    config: `${fixturePlugin("shell")}\n[tools.implementations]\nbash = "shell"\n`,
    answers: [{ calls: [bash("echo ran > proof")] }, { text: "ok" }],
  });
  await changeConfig(daemon, (config) => `${config}\n[plugins.shell\n`);
  const unreadable = await daemon.cookie(["plugin", "reload", "shell"]);
  expect(unreadable).toMatchObject({ exitCode: 1, stdout: "" });
  expect(unreadable.stderr).toMatch(/^error: .*config\.toml:\d+:/);
  expect((await daemon.cookie(["plugin", "list"])).stdout).toMatch(/^shell .* bash\b/m);

  await changeConfig(daemon, (config) =>
    config
      .replace("\n[plugins.shell\n", "")
      .replace("[plugins.shell]", '[plugins.shell]\nenv = {BREAK = "yes"}\ncwd = "/no/such/place"'),
  );
  const failed = await daemon.cookie(["plugin", "reload", "shell"]);
  expect(failed).toMatchObject({ exitCode: 1, stderr: "" });
  expect(failed.stdout).toMatch(/^shell\n {2}state {5}failed: .+/);
  expect(failed.stdout).toMatch(/tools {5}bash/);
  const client = await daemon.connect();
  const { sessionId, runId } = await daemon.startRun(client, "Hi");
  const watch = new SessionWatch(client, sessionId);
  await watch.end(runId);
  expect(watch.payloads("tool_call_terminated")[0]?.error).toMatchObject({
    code: "plugin_unavailable",
  });
  await expect(readFile(join(daemon.project.cwd, "proof"))).rejects.toMatchObject({
    code: "ENOENT",
  });
});
