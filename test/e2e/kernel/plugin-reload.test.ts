import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PluginsReload, PluginsRestart, PluginsStatus } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { fixtureDirectory, fixturePlugin } from "../../support/fixture-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const echo = (text: string) => ({ name: "echo", arguments: { text } });

const entry = (name: string, directory: string, keys = "") =>
  `[plugins.${name}]\npath = ${JSON.stringify(directory)}\n${keys}\n`;

async function statusOf({ client }: TestKernel, name: string) {
  const { plugins } = await client.request(PluginsStatus, {});
  return plugins.find(({ plugin }) => plugin === name);
}

/** Adds to the user's configuration. */
async function changeConfig(kernel: TestKernel, change: (config: string) => string): Promise<void> {
  const file = join(kernel.project.home, ".cookie-agent/config.toml");
  await writeFile(file, change(await readFile(file, "utf8")));
}

const reload = ({ client }: TestKernel, plugin: string) =>
  client.request(PluginsReload, { plugin });

function toolNames(kernel: TestKernel, index: number): unknown[] {
  const tools = pick(kernel.server.requests[index]?.body, "tools") as unknown[];
  return tools.map((tool) => pick(tool, "function", "name"));
}

test("[B136] [E-072] the plugin that replaces bash breaks on reload: bash is unavailable, never the shipped one", async () => {
  let directory = "";
  const kernel = await openTestKernel({
    prepare: async (project) => {
      directory = join(project.home, "shell");
      await cp(fixtureDirectory("shell"), directory, { recursive: true });
      await cp(join(fixtureDirectory("shell"), "../wire.mjs"), join(project.home, "wire.mjs"));
      const file = join(project.home, ".cookie-agent/config.toml");
      const swap = `${entry("shell", directory)}\n[tools.implementations]\nbash = "shell"\n`;
      await writeFile(file, `${await readFile(file, "utf8")}\n${swap}`);
    },
    answers: [
      { calls: [bash("echo 1 > proof")] },
      { text: "ok" },
      { calls: [bash("echo 2 > proof")] },
      { text: "ok" },
      { calls: [bash("echo 3 > proof")] },
      { text: "ok" },
    ],
  });
  await kernel.run("One");
  const main = join(directory, "main.mjs");
  const good = await readFile(main, "utf8");
  await writeFile(main, 'throw new Error("this entry is broken");');
  const { plugin } = await reload(kernel, "shell");
  expect(plugin).toMatchObject({
    state: "failed",
    reason: expect.stringContaining("this entry is broken"),
    tools: ["bash"],
  });
  const broken = await kernel.run("Two");
  expect(broken.watch.payloads("tool_call_terminated")[0]?.error).toMatchObject({
    code: "plugin_unavailable",
    message: expect.stringContaining("this entry is broken"),
  });
  const manifest = join(directory, "cookie-plugin.json");
  const declared = await readFile(manifest, "utf8");
  await writeFile(manifest, "{");
  expect((await reload(kernel, "shell")).plugin).toMatchObject({ state: "failed", tools: [] });
  kernel.server.enqueue();
  await kernel.run("Three");
  expect(toolNames(kernel, 4)).not.toContain("bash");
  expect((await statusOf(kernel, "builtin.bash"))?.tools).toEqual([]);
  await expect(readFile(join(kernel.project.cwd, "proof"))).rejects.toMatchObject({
    code: "ENOENT",
  });

  await writeFile(manifest, declared);
  await writeFile(main, good);
  kernel.server.enqueue({ calls: [bash("echo 4 > proof")] }, { text: "ok" });
  expect((await reload(kernel, "shell")).plugin).toMatchObject({
    state: "connected",
    tools: ["bash"],
  });
  const mended = await kernel.run("Four");
  expect(mended.watch.payloads("tool_call_terminated")[0]?.result?.output).toBe(
    "would run echo 4 > proof",
  );
});

test("[E-064] [E-074] a reload takes the entry and the table of tools anew; a run that pinned the old owner is told", async () => {
  const kernel = await openTestKernel({
    config: fixturePlugin("shell"),
    answers: [{ calls: [bash("true")] }, { text: "ok" }],
  });
  await kernel.run("Before");
  await changeConfig(kernel, (config) => `${config}\n[tools.implementations]\nbash = "shell"\n`);
  kernel.server.enqueue({ calls: [bash("sleep 60")] }, { calls: [bash("true")] }, { text: "ok" });
  const session = await kernel.createSession();
  const watch = kernel.watch(session);
  const runId = await kernel.start(session, "During");
  await watch.event("tool_call_started");
  const reloaded = await reload(kernel, "shell");
  expect(reloaded.plugin).toMatchObject({ plugin: "shell", tools: ["bash"] });
  const { plugin } = await kernel.client.request(PluginsRestart, { plugin: "builtin.bash" });
  expect(plugin).toMatchObject({
    state: "connected",
    tools: [],
    shadowed: [{ tool: "bash", by: "shell" }],
  });
  await watch.end(runId);
  expect(watch.payloads("tool_call_terminated").map(({ error }) => error?.code)).toEqual([
    expect.stringMatching(/plugin_crashed|shutting_down/),
    "operation_changed",
  ]);
});

test("[E-064] a configuration that cannot be read changes nothing, and no plugin of that name is an error", async () => {
  const kernel = await openTestKernel({
    config: fixturePlugin("echo"),
    answers: [{ calls: [echo("still here")] }, { text: "ok" }],
  });
  await changeConfig(kernel, (config) => `${config}\n[plugins.echo]\n`);
  await expect(reload(kernel, "echo")).rejects.toMatchObject({
    message: expect.stringContaining("config.toml:"),
    data: { layer: "user", line: expect.any(Number) },
  });
  await changeConfig(kernel, (config) => config.replace(/\n\[plugins\.echo\]\n$/, ""));
  await expect(reload(kernel, "nobody")).rejects.toMatchObject({ code: "plugin_missing" });
  const { watch } = await kernel.run("Hi");
  expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toBe("still here");
});

test("[C-234] [C-237] trust for this process ends with the content it was given for: a reload does not renew it", async () => {
  const kernel = await openTestKernel({
    trust: "this_process",
    prepare: (project) => project.write(".cookie-agent/config.toml", fixturePlugin("echo")),
    answers: [{ text: "ok" }],
  });
  expect((await reload(kernel, "echo")).plugin).toMatchObject({ state: "connected" });
  await kernel.project.write(".cookie-agent/config.toml", fixturePlugin("echo", "cwd = '/'"));
  expect((await reload(kernel, "echo")).plugin).toMatchObject({
    state: "failed",
    pid: null,
    source: "workspace",
    reason: expect.stringContaining("cookie trust"),
  });
  await kernel.run("Hi");
  expect(toolNames(kernel, 0)).not.toContain("echo");
});

test("[E-057] with prewarm run a plugin starts with the model request of a run that has its tool", async () => {
  const kernel = await openTestKernel({
    prepare: async (project) => {
      const directory = join(project.home, "echo");
      await cp(fixtureDirectory("echo"), directory, { recursive: true });
      await cp(join(fixtureDirectory("echo"), "../wire.mjs"), join(project.home, "wire.mjs"));
      const manifest = join(directory, "cookie-plugin.json");
      const declared = JSON.parse(await readFile(manifest, "utf8")) as object;
      await writeFile(manifest, JSON.stringify({ ...declared, prewarm: "run" }));
      const file = join(project.home, ".cookie-agent/config.toml");
      const more = `${entry("echo", directory)}\n${fixturePlugin("slow")}`;
      await writeFile(file, `${await readFile(file, "utf8")}\n${more}`);
    },
    answers: [{ text: "no call" }],
  });
  expect(await statusOf(kernel, "echo")).toMatchObject({ state: "disconnected" });
  await kernel.run("Hi");
  expect(await statusOf(kernel, "echo")).toMatchObject({
    state: expect.stringMatching(/^connect(?:ing|ed)$/),
  });
  expect(await statusOf(kernel, "slow")).toMatchObject({ state: "disconnected" });
});
