import { cp, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PluginsStatus } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixtureDirectory } from "../../support/fixture-plugin.ts";
import { type Answer, pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";
import type { TempProject } from "../../support/temp-project.ts";

type Json = Record<string, unknown>;

const tool = (name: string, more: Json = {}): Json => ({
  name,
  description: `The tool ${name}.`,
  parameters: { type: "object", properties: { q: { type: "string" } } },
  permission_name: "found",
  ...more,
});
const mcpTool = (name: string, more: Json = {}) =>
  tool(name, {
    prepare: { mode: "static", resources: [{ action: "mcp", tool: true }] },
    concurrency: "parallel",
    ...more,
  });

const place = (project: TempProject, name: string) => join(dirname(project.home), "shipped", name);

/** The fixture that lists tools, under a name of its own, as if it were shipped. */
async function install(project: TempProject, name: string, more: Json = {}): Promise<void> {
  const directory = place(project, name);
  await cp(fixtureDirectory("lister"), directory, { recursive: true });
  await cp(join(fixtureDirectory("lister"), "../wire.mjs"), join(directory, "../wire.mjs"));
  const file = join(directory, "cookie-plugin.json");
  const manifest = JSON.parse(await readFile(file, "utf8")) as Json;
  const tools = [
    { ...(manifest["tools"] as Json[])[0], name: `relist_${name}`, permission_name: "relist" },
  ];
  await writeFile(file, JSON.stringify({ ...manifest, name, tools, ...more }));
  const main = join(directory, "main.mjs");
  const code = await readFile(main, "utf8");
  await writeFile(main, code.replace('"relist"', JSON.stringify(`relist_${name}`)));
}

interface Shipped {
  readonly name: string;
  readonly manifest?: Json;
}

function openWith(plugins: readonly Shipped[], options: TestKernelOptions): Promise<TestKernel> {
  return openTestKernel({
    ...options,
    agents: { primary: agentDocument({ ...ALLOW_ALL, mcp: "allow" }) },
    firstParty: (project) => plugins.map(({ name }) => place(project, name)),
    prepare: async (project) => {
      for (const { name, manifest } of plugins) await install(project, name, manifest);
      await options.prepare?.(project);
    },
  });
}

const relist = (plugin: string, lists: Json[], more: Json = {}): Answer => ({
  calls: [{ name: `relist_${plugin}`, arguments: { lists, ...more } }],
});
const call = (...names: string[]): Answer => ({
  calls: names.map((name) => ({ name, arguments: { q: "x" } })),
});
const done: Answer = { text: "ok" };

function toolNames(kernel: TestKernel, index: number): unknown[] {
  const tools = pick(kernel.server.requests[index]?.body, "tools") as unknown[];
  return tools.map((one) => pick(one, "function", "name"));
}

const LISTER = { name: "lister" };
const BRIDGE = { name: "bridge", manifest: { provides: ["mcp"] } };

describe("a list that changes while a run goes on", () => {
  test("[E-132] the run keeps its tools, the next one sees the new list and calls from it", async () => {
    const kernel = await openWith([LISTER], {
      answers: [
        relist("lister", [{ tools: [tool("found_one")] }]),
        call("found_one"),
        done,
        call("found_one"),
        done,
      ],
    });
    const first = await kernel.run("List");
    expect(first.watch.payloads("tool_call_terminated")[1]?.error?.message).toContain(
      "found_one is not published",
    );
    expect(toolNames(kernel, 1)).not.toContain("found_one");
    const second = await kernel.run("Call");
    expect(toolNames(kernel, 3)).toContain("found_one");
    expect(second.watch.payloads("tool_call_terminated")[0]?.result?.output).toBe(
      "lister ran found_one",
    );
  });

  test("[E-132] [E-074] a pinned tool that vanished is unavailable, one that became another has changed", async () => {
    const kernel = await openWith([LISTER], {
      answers: [
        relist("lister", [{ tools: [tool("goes"), tool("turns")] }]),
        done,
        relist("lister", [{ tools: [tool("turns", { description: "Another tool." })] }]),
        call("goes", "turns"),
        done,
      ],
    });
    await kernel.run("List");
    const { watch } = await kernel.run("Change");
    const ends = watch.payloads("tool_call_terminated").slice(1);
    expect(ends.map(({ error }) => error?.code)).toEqual([
      "plugin_unavailable",
      "operation_changed",
    ]);
  });

  test("[E-071] [E-074] the bridge's late list takes a name from another plugin, never from a shipped manifest", async () => {
    const kernel = await openWith([LISTER, BRIDGE], {
      answers: [
        relist("lister", [{ tools: [tool("search")] }]),
        done,
        relist("bridge", [{ tools: [mcpTool("search"), mcpTool("read")] }]),
        call("search"),
        done,
        call("search"),
        done,
      ],
    });
    await kernel.run("List");
    const { watch } = await kernel.run("Claim late");
    const [listing, pinned] = watch.payloads("tool_call_terminated");
    expect(JSON.parse(listing?.result?.output ?? "")).toMatchObject({
      answers: [{ accepted: ["search"], shadowed: [{ tool: "read", by: "builtin.fs" }] }],
    });
    expect(pinned?.error?.code).toBe("operation_changed");
    const later = await kernel.run("Call");
    expect(later.watch.payloads("tool_call_terminated")[0]?.result?.output).toBe(
      "bridge ran search",
    );
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    expect(plugins.find(({ plugin }) => plugin === "lister")).toMatchObject({
      tools: ["relist_lister"],
      shadowed: [{ tool: "search", by: "bridge" }],
    });
  });

  test("[E-135] with the process the tools go, and a run that pinned them is told", async () => {
    const kernel = await openWith([LISTER], {
      answers: [relist("lister", [{ tools: [tool("found_one")] }]), done],
    });
    await kernel.run("List");
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const pid = plugins.find(({ plugin }) => plugin === "lister")?.pid ?? 0;
    // A killed process is there until the kernel has seen it end.
    const command = `kill -9 ${pid}; while kill -0 ${pid}; do sleep 0.01; done 2>/dev/null`;
    kernel.server.enqueue(
      { calls: [{ name: "bash", arguments: { command } }] },
      call("found_one"),
      done,
      done,
    );
    const { watch } = await kernel.run("Call");
    expect(toolNames(kernel, 2)).toContain("found_one");
    expect(watch.payloads("tool_call_terminated")[1]?.error).toMatchObject({
      code: "plugin_unavailable",
      message: expect.stringContaining("found_one"),
    });
    await kernel.run("Later");
    expect(toolNames(kernel, kernel.server.requests.length - 1)).not.toContain("found_one");
  });
});

describe("a claimed name", () => {
  test("[E-133] a model's call to it is resolved once per run, judged by policy, and unknown ones are refused", async () => {
    const kernel = await openWith([LISTER, BRIDGE], {
      answers: [
        relist("bridge", [{ tools: [], claims: ["git_*", "re*"] }], {
          resolvable: { git_log: mcpTool("git_log"), read: mcpTool("read") },
        }),
        done,
        call("git_log", "git_log", "git_none", "svn_log", "read"),
        done,
        relist("bridge", []),
        done,
      ],
    });
    await kernel.run("Claim");
    const { watch } = await kernel.run("Call");
    expect(toolNames(kernel, 2)).not.toContain("git_log");
    const ends = [...watch.payloads("tool_call_terminated")].sort(
      (a, b) => a.owner.content_index - b.owner.content_index,
    );
    const told = ends.map(({ result, error }) => result?.output ?? error?.message);
    expect(told.slice(0, 4)).toEqual([
      "bridge ran git_log",
      "bridge ran git_log",
      expect.stringContaining("git_none is not published"),
      expect.stringContaining("svn_log is not published"),
    ]);
    expect(ends[4]?.error?.code).toBe("invalid_arguments");
    const { watch: last } = await kernel.run("Ask");
    const output = last.payloads("tool_call_terminated")[0]?.result?.output ?? "";
    expect(JSON.parse(output)).toMatchObject({ asked: ["git_log", "git_none"] });
  });

  test("[E-133] [E-076] a run whose agent has no rule for the action may not call it", async () => {
    const kernel = await openTestKernel({
      firstParty: (project) => [place(project, "bridge")],
      prepare: (project) => install(project, "bridge", BRIDGE.manifest),
      answers: [
        relist("bridge", [{ tools: [], claims: ["git_*"] }], {
          resolvable: { git_log: mcpTool("git_log") },
        }),
        done,
        call("git_log"),
        done,
      ],
    });
    await kernel.run("Claim");
    const { watch } = await kernel.run("Call");
    expect(watch.payloads("tool_call_terminated")[0]?.error?.message).toContain("not published");
  });
});
