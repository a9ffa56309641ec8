import { readdirSync, readlinkSync } from "node:fs";
import {
  PluginsStatus,
  RuntimeSnapshotGet,
  SessionPermissionSet,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixtureDirectory, fixturePlugin } from "../../support/fixture-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const echo = (text: string) => ({ name: "echo", arguments: { text } });

function toolNames(body: unknown): unknown[] {
  return (pick(body, "tools") as unknown[]).map((tool) => pick(tool, "function", "name"));
}

describe("a plugin of the workspace's", () => {
  test("[C-234] it is not started any more when a file changed after the start", async () => {
    const kernel = await openTestKernel({
      trust: "this_process",
      prepare: (project) => project.write(".cookie-agent/config.toml", fixturePlugin("echo")),
      answers: [{ calls: [echo("hello")] }, { text: "ok" }],
    });
    await kernel.project.write(".cookie-agent/later.txt", "changed");
    const { watch } = await kernel.run("Hi");
    const { error } = watch.payloads("tool_call_terminated")[0] ?? {};
    expect(error).toMatchObject({ code: "plugin_unavailable" });
    expect(error?.message).toContain("cookie trust");
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const status = plugins.find(({ plugin }) => plugin === "echo");
    expect(status).toMatchObject({ state: "failed", pid: null, source: "workspace" });
  });
});

describe("the plugins that come along", () => {
  test.runIf(process.platform === "linux")(
    "[S-001] their tools run in processes of their own, which have no file of a session open",
    async () => {
      const kernel = await openTestKernel({
        answers: [
          { calls: [bash("echo out"), { name: "read", arguments: { filePath: "." } }] },
          { text: "ok" },
        ],
      });
      const { watch } = await kernel.run("Hi");
      expect(watch.payloads("tool_call_terminated")).toMatchObject([
        { outcome: "completed" },
        { outcome: "completed" },
      ]);
      const { plugins } = await kernel.client.request(PluginsStatus, {});
      const pids = plugins.flatMap(({ pid }) => (pid === null ? [] : [pid]));
      expect(new Set(pids).size).toBeGreaterThanOrEqual(2);
      expect(pids).not.toContain(process.pid);
      const state = /\/(?:sessions|artifacts)(?:\.shared)?\//;
      expect(openFiles(process.pid).filter((file) => state.test(file))).not.toEqual([]);
      expect(pids.flatMap(openFiles).filter((file) => state.test(file))).toEqual([]);
    },
  );
});

function openFiles(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
}

describe("a plugin of the user's", () => {
  test("[S-002] its tools are published under the action plugin and run in a process of its own", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [{ calls: [echo("hello")] }, { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    expect(toolNames(kernel.server.requests[0]?.body)).toContain("echo");
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toBe("hello");
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const status = plugins.find(({ plugin }) => plugin === "echo");
    expect(status).toMatchObject({ state: "connected", tier: "untrusted", source: "user" });
    expect(status?.pid).not.toBe(process.pid);
  });

  test("[S-126] a session's rule for the action plugin decides by permission name and resource", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      agents: { primary: agentDocument({ ...ALLOW_ALL, plugin: "ask" }) },
      headless: true,
      answers: [{ calls: [echo("good"), echo("bad")] }, { text: "ok" }],
    });
    const session = await kernel.createSession();
    for (const [resource, effect] of [
      ["echo *", "allow"],
      ["echo bad", "deny"],
    ] as const) {
      await kernel.client.request(SessionPermissionSet, {
        session_id: session,
        action: "plugin",
        resource,
        effect,
      });
    }
    const { watch } = await kernel.run("Hi", { session });
    const codes = watch.payloads("tool_call_terminated").map(({ error }) => error?.code ?? "ok");
    expect(codes.sort()).toEqual(["ok", "permission_denied"]);
  });

  test("no process is started for a plugin that nothing calls", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [{ text: "ok" }],
    });
    await kernel.run("Hi");
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    expect(plugins.map(({ pid }) => pid)).toEqual(plugins.map(() => null));
  });

  test("a crash is a result that the model reads, and the next call starts it again", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("crash"),
      answers: [
        { calls: [{ name: "crash_now", arguments: { how: "kill" } }] },
        { calls: [{ name: "survive", arguments: {} }] },
        { text: "ok" },
      ],
    });
    const { watch, end } = await kernel.run("Hi");
    expect(
      watch.payloads("tool_call_terminated").map(({ error, outcome }) => error?.code ?? outcome),
    ).toEqual(["plugin_crashed", "completed"]);
    expect(end.type).toBe("run_completed");
  });
});

describe("slots", () => {
  test("[S-002] a tool of a shipped plugin's name does not take its place by itself", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("shell"),
      answers: [{ calls: [bash("echo really")] }, { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("really");
    const { snapshot } = await kernel.client.request(RuntimeSnapshotGet, {});
    expect(snapshot.tools.find(({ name }) => name === "bash")).toMatchObject({
      plugin: "builtin.bash",
      shadowed: ["shell"],
    });
  });

  test("[S-002] a bound replacement serves the tool, under the slot's own rules", async () => {
    const kernel = await openTestKernel({
      config: `${fixturePlugin("shell")}\n[tools.implementations]\nbash = "shell"\n`,
      agents: { primary: agentDocument({ bash: { "*": "allow", "rm *": "deny" } }) },
      answers: [{ calls: [bash("make"), bash("rm -rf .")] }, { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    const ends = watch.payloads("tool_call_terminated");
    expect(ends.map(({ result, error }) => error?.code ?? result?.output).sort()).toEqual([
      "permission_denied",
      "would run make",
    ]);
  });

  test("[B151] of two plugins with one tool name the later serves it, the other says so, until a binding names it", async () => {
    const tool = { description: "d", permission_name: "mine", parameters: { type: "object" } };
    const command = (name: string, tools: string[]) => {
      const declared = tools.map((one) => ({ name: one, ...tool }));
      const introduction = JSON.stringify({ name, capabilities: { tools: true }, tools: declared });
      const main = `${fixtureDirectory("hostile")}/main.mjs`;
      return `[plugins.${name}]\ncommand = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(main)}]\nenv = { INTRODUCTION = '${introduction}' }\n`;
    };
    const config = `${command("early", ["mine", "own", "bash"])}\n${command("late", ["mine"])}`;
    const statusOf = async (kernel: Awaited<ReturnType<typeof openTestKernel>>) => {
      await kernel.run("Hi");
      const { plugins } = await kernel.client.request(PluginsStatus, {});
      const told = plugins.filter(({ source }) => source === "user");
      return told.map(({ plugin, state, tools, shadowed }) => ({ plugin, state, tools, shadowed }));
    };
    const plain = await openTestKernel({ config, answers: [{ text: "ok" }] });
    const bashLost = { tool: "bash", by: "builtin.bash" };
    expect(await statusOf(plain)).toEqual([
      {
        plugin: "early",
        state: "connected",
        tools: ["own"],
        shadowed: [bashLost, { tool: "mine", by: "late" }],
      },
      { plugin: "late", state: "connected", tools: ["mine"], shadowed: [] },
    ]);
    expect(toolNames(plain.server.requests[0]?.body)).toEqual(
      expect.arrayContaining(["bash", "mine", "own"]),
    );
    const bound = await openTestKernel({
      config: `${config}\n[tools.implementations]\nmine = "early"\n`,
      answers: [{ text: "ok" }],
    });
    expect(await statusOf(bound)).toMatchObject([
      { plugin: "early", tools: ["mine", "own"] },
      { plugin: "late", tools: [], shadowed: [{ tool: "mine", by: "early" }] },
    ]);
  });

  test("an excluded tool is not published and a call of it is told so", async () => {
    const kernel = await openTestKernel({
      config: '[tools]\nexclude = ["bash"]\n',
      answers: [{ calls: [bash("echo hi")] }, { text: "ok" }],
    });
    const { watch, end } = await kernel.run("Hi");
    expect(toolNames(kernel.server.requests[0]?.body)).not.toContain("bash");
    expect(watch.payloads("tool_call_terminated")[0]?.outcome).toBe("failed");
    expect(end.type).toBe("run_completed");
  });
});
