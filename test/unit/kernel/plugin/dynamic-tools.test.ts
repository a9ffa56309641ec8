import type { ResultOf, ToolsListChanged } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { PluginHost } from "../../../../kernel/src/plugin/plugin-host.ts";
import { callOf, entryFor, eventually, FIXTURES, never, openHost } from "./open-host.ts";
import { shipped } from "./shipped-fixtures.ts";

type Answer = ResultOf<typeof ToolsListChanged> & { readonly code?: string };

const tool = (name: string, more: Record<string, unknown> = {}) => ({
  name,
  description: `The tool ${name}.`,
  parameters: { type: "object", properties: { q: { type: "string" } } },
  permission_name: "found",
  ...more,
});
const mcpTool = (name: string) =>
  tool(name, { prepare: { mode: "static", resources: [{ action: "mcp", tool: true }] } });

/** Has the plugin send lists, all at once, and tells what each was answered and which names it was asked for. */
async function relist(
  host: PluginHost,
  lists: readonly Record<string, unknown>[],
  more: Record<string, unknown> = {},
  plugin = "lister",
): Promise<{ answers: Answer[]; asked: string[] }> {
  const { content } = await host.call(plugin, callOf("relist", { lists, ...more }), never());
  return JSON.parse(content ?? "") as { answers: Answer[]; asked: string[] };
}

const listed = (host: PluginHost, plugin = "lister") =>
  host
    .plugins()
    .find(({ name }) => name === plugin)
    ?.dynamic?.tools.map(({ declaration }) => declaration.name);

const lister = (change?: Parameters<typeof shipped>[1]) => shipped(["lister"], change);

describe("a list", () => {
  test("[E-130] [E-131] it replaces the one before as a whole and leaves the manifest's tools", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    const first = await relist(host, [{ tools: [tool("one"), tool("two")] }]);
    expect(first.answers).toEqual([
      { revision: 1, accepted: ["one", "two"], shadowed: [], rejected: [] },
    ]);
    expect(listed(host)).toEqual(["one", "two"]);
    const second = await relist(host, [{ tools: [tool("two"), tool("three")] }]);
    expect(second.answers).toMatchObject([{ revision: 2, accepted: ["two", "three"] }]);
    expect(listed(host)).toEqual(["two", "three"]);
    expect(host.status()[0]?.tools).toEqual(["relist", "two", "three"]);
    expect((await host.call("lister", callOf("three"), never())).content).toBe("lister ran three");
    await expect(host.call("lister", callOf("one"), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
  });

  test("[E-131] [E-034] each declaration is judged on its own, and what is wrong is named", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    const { answers } = await relist(host, [
      {
        tools: [
          tool("good"),
          tool("x y"),
          tool("Camel"),
          tool("relist"),
          tool("good"),
          tool("open", {
            prepare: { mode: "static", resources: [{ action: "plugin", arg: "nix" }] },
          }),
          tool("flat", { parameters: { type: "string" } }),
          tool("bad_schema", { parameters: { type: "object", properties: 7 } }),
          tool("far", { parameters: { type: "object", $ref: "https://example.com/s" } }),
          tool("extra", { surprise: true }),
          "no object",
          null,
          tool("fine"),
        ],
      },
    ]);
    expect(answers[0]?.accepted).toEqual(["good", "fine"]);
    expect(answers[0]?.rejected.map(({ tool: name, message }) => [name, message])).toEqual([
      ["x y", expect.stringContaining("name: invalid tool name")],
      ["Camel", expect.stringContaining("snake_case")],
      ["relist", expect.stringContaining("the manifest declares this tool")],
      ["good", expect.stringContaining("twice")],
      ["open", expect.stringContaining("no property nix")],
      ["flat", expect.stringContaining('expected "object"')],
      ["bad_schema", expect.stringContaining("not a JSON Schema")],
      ["far", expect.stringContaining("points outside")],
      ["extra", expect.stringContaining("surprise")],
      ["", expect.any(String)],
      ["", expect.any(String)],
    ]);
    expect(host.status()[0]?.diagnostics).toContainEqual(
      expect.stringContaining("the dynamic tool Camel is not used"),
    );
  });

  test("[E-131] more than 512 tools are refused and the list before stays", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    await relist(host, [{ tools: [tool("kept")] }]);
    const many = Array.from({ length: 513 }, (_, index) => tool(`t${index}`));
    const { answers } = await relist(host, [{ tools: many }]);
    expect(answers).toEqual([{ code: "limit_exceeded", limit: 512 }]);
    expect(listed(host)).toEqual(["kept"]);
    const full = await relist(host, [{ tools: many.slice(1) }]);
    expect(full.answers[0]?.accepted).toHaveLength(512);
  });

  test("[E-131] lists that come too fast coalesce: the last one counts and all get its answer", async () => {
    const { host } = await openHost({
      firstParty: await lister(),
      limits: { toolListIntervalMs: 300 },
    });
    await relist(host, [{ tools: [tool("first")] }]);
    const names = ["a", "b", "c", "d"];
    const { answers } = await relist(
      host,
      names.map((name) => ({ tools: [tool(name)] })),
    );
    expect(answers.map(({ revision, accepted }) => [revision, accepted])).toEqual(
      names.map(() => [2, ["d"]]),
    );
    expect(listed(host)).toEqual(["d"]);
  });

  test("[E-114] [E-134] it obeys the tier: an action beyond it is refused, the rest is clamped", async () => {
    const manifest = { launch: { kind: "path" as const, directory: `${FIXTURES}/lister` } };
    const probe = await openHost({ entries: [entryFor("lister", manifest)] });
    const integrity = probe.host.plugins()[0]?.manifestDigest ?? "";
    const { host } = await openHost({
      entries: [entryFor("lister", { ...manifest, trust: "trusted", integrity })],
    });
    const write = { mode: "static", resources: [{ action: "write", arg: "q" }] };
    const { answers } = await relist(host, [
      {
        tools: [
          tool("writes", { prepare: write }),
          tool("whole", { result_truncation: "opt_out", concurrency: "parallel" }),
        ],
      },
    ]);
    expect(answers[0]?.accepted).toEqual(["whole"]);
    expect(answers[0]?.rejected).toMatchObject([
      { tool: "writes", message: expect.stringContaining("beyond the tier trusted") },
    ]);
    expect(host.plugins()[0]?.dynamic?.tools).toMatchObject([
      { truncation: "bounded", concurrency: "parallel" },
    ]);
  });

  test("[E-114] [E-118] an untrusted plugin is told that it has no such right, before its params are looked at", async () => {
    const { host } = await openHost({ entries: [entryFor("lister")] });
    const { answers } = await relist(host, [{ tools: "nonsense" }]);
    expect(answers).toEqual([{ code: "not_granted" }]);
    expect(host.status()[0]?.diagnostics).toContainEqual(expect.stringContaining("dynamic_tools"));
  });

  test("[E-135] it is gone with the process, however that ends", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    await relist(host, [{ tools: [tool("one")], claims: ["x_*"] }]);
    const before = host.revision;
    process.kill(host.status()[0]?.pid ?? 0, "SIGKILL");
    await eventually(() => host.status()[0]?.state !== "connected");
    expect(host.plugins()[0]?.dynamic).toBeUndefined();
    expect(host.currentTool("lister", "one")).toBeUndefined();
    expect(host.revision).toBeGreaterThan(before);
    await expect(host.resolveTool("lister", "x_y", never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
  });

  test("[E-022] one that is sent right behind the answer to the handshake counts", async () => {
    const listing = JSON.stringify({ tools: [tool("early")] });
    const probe = await openHost({ entries: [entryFor("lister")] });
    const integrity = probe.host.plugins()[0]?.manifestDigest ?? "";
    const { host } = await openHost({
      entries: [entryFor("lister", { trust: "trusted", integrity, env: { LISTED: listing } })],
    });
    await host.ready();
    await eventually(() => listed(host)?.[0] === "early");
  });
});

describe("the MCP bridge's list", () => {
  const bridge = () =>
    lister((manifest) => {
      manifest["provides"] = ["mcp"];
    });

  test("[E-070] [E-134] names follow its own sanitiser, the action is mcp with the tool's name", async () => {
    const { host } = await openHost({ firstParty: await bridge() });
    const { answers } = await relist(host, [
      { tools: [mcpTool("GitHub-search_2"), tool("plain_action")] },
    ]);
    expect(answers[0]?.accepted).toEqual(["GitHub-search_2"]);
    expect(answers[0]?.rejected).toMatchObject([
      { tool: "plain_action", message: expect.stringContaining('{"action":"mcp","tool":true}') },
    ]);
  });
});

describe("a claim", () => {
  test("[E-133] a claimed name is asked for, judged and then callable", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    await relist(host, [{ tools: [], claims: ["lazy_*"] }], {
      resolvable: { lazy_one: tool("lazy_one"), lazy_liar: tool("other"), lazy_bad: { name: 1 } },
    });
    const resolved = await host.resolveTool("lister", "lazy_one", never());
    expect(resolved?.declaration.name).toBe("lazy_one");
    expect(listed(host)).toEqual([]);
    expect((await host.call("lister", callOf("lazy_one"), never())).content).toBe(
      "lister ran lazy_one",
    );
    expect(await host.resolveTool("lister", "lazy_none", never())).toBeNull();
    for (const name of ["lazy_liar", "lazy_bad"]) {
      await expect(host.resolveTool("lister", name, never())).rejects.toMatchObject({
        code: "prepare_failed",
        message: expect.stringContaining(name),
      });
    }
    await expect(host.resolveTool("lister", "eager", never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
    const { asked } = await relist(host, []);
    expect(asked).toEqual(["lazy_one", "lazy_none", "lazy_liar", "lazy_bad"]);
  });

  test("[E-133] a list without the claim takes the tools declared under it away", async () => {
    const { host } = await openHost({ firstParty: await lister() });
    await relist(host, [{ tools: [], claims: ["lazy_*", "more_*"] }], {
      resolvable: { lazy_one: tool("lazy_one"), more_one: tool("more_one") },
    });
    await host.resolveTool("lister", "lazy_one", never());
    await host.resolveTool("lister", "more_one", never());
    await relist(host, [{ tools: [], claims: ["more_*"] }]);
    expect(host.currentTool("lister", "lazy_one")).toBeUndefined();
    expect(host.currentTool("lister", "more_one")).toBeDefined();
  });
});
