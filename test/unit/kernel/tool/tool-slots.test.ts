import { Revision, type ToolDeclaration } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { PluginFacts, ResolvedTool } from "../../../../kernel/src/plugin/plugin-facts.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import {
  declareTool,
  NO_SELECTION,
  pluginFacts,
  resolveTool,
  stringSchema,
} from "./dispatch-fixture.ts";

const READ = declareTool({
  name: "read",
  parameters: stringSchema("path"),
  prepare: { mode: "static", resources: [{ action: "read", arg: "path", as: "path" }] },
});
const FIRST_PARTY = pluginFacts("builtin.fs", [READ]);
const bindTo = (tool: string, plugin: string) => ({
  ...NO_SELECTION,
  implementations: new Map([[tool, plugin]]),
});

function thirdParty(name: string, ...tools: ToolDeclaration[]) {
  return pluginFacts(name, tools, { tier: "untrusted", source: "user" });
}

function freeze(
  rules: { action: "read" | "plugin"; resource: string; effect: "allow" | "deny" }[],
) {
  const plugins = [
    FIRST_PARTY,
    thirdParty("other", declareTool({ name: "zeta" }), declareTool({ name: "alpha" })),
  ];
  const policy = { documentRules: rules, overlayRules: [], workspaceRoot: "/" };
  return buildSlotTable({ plugins, tools: NO_SELECTION }).freeze({ policy, toolCalling: true });
}

describe("who serves a tool name", () => {
  test("[T-004] [E-071] a first-party declaration wins, between plugins the later one", () => {
    const table = buildSlotTable({
      plugins: [
        FIRST_PARTY,
        thirdParty("early", declareTool({ name: "search" }), READ),
        thirdParty("late", declareTool({ name: "search" })),
      ],
      tools: NO_SELECTION,
    });
    expect(table.entries().map(({ name, plugin, shadowed }) => [name, plugin, shadowed])).toEqual([
      ["read", "builtin.fs", ["early"]],
      ["search", "late", ["early"]],
    ]);
    expect(table.unfit).toEqual([]);
  });

  test("[E-071] a dynamic tool of the MCP bridge stands behind a manifest and before every other plugin", () => {
    const [read, search, own] = ["read", "search", "own"].map((name) =>
      resolveTool(declareTool({ name })),
    );
    const listing = (...tools: (ResolvedTool | undefined)[]) => ({
      dynamic: { tools: tools.filter((tool) => tool !== undefined), prefixes: [] },
    });
    const table = buildSlotTable({
      plugins: [
        pluginFacts("builtin.mcp", [], { provides: ["mcp"], ...listing(read, search) }),
        FIRST_PARTY,
        pluginFacts("builtin.other", [], listing(search, own)),
        pluginFacts("early", [], { tier: "trusted", ...listing(own) }),
        thirdParty("late", declareTool({ name: "search" }), declareTool({ name: "own" })),
        pluginFacts("sly", [], { tier: "untrusted", provides: ["mcp"], ...listing() }),
      ],
      tools: NO_SELECTION,
    });
    expect(table.entries().map(({ name, plugin, shadowed }) => [name, plugin, shadowed])).toEqual([
      ["own", "late", ["builtin.other", "early"]],
      ["read", "builtin.fs", ["builtin.mcp"]],
      ["search", "builtin.mcp", ["builtin.other", "late"]],
    ]);
  });

  test("[E-201] dynamic tools and plugins without manifest belong to every profile", () => {
    const ELSEWHERE = declareTool({ name: "elsewhere", profile: ["cookie"] });
    const plugins = [
      thirdParty("stranger", ELSEWHERE),
      pluginFacts("lister", [], {
        dynamic: { tools: [resolveTool({ ...ELSEWHERE, name: "listed" })], prefixes: [] },
      }),
      pluginFacts("known", [{ ...ELSEWHERE, name: "declared" }], {
        tier: "untrusted",
        manifestDigest: Revision.parse(`sha256:${"0".repeat(64)}`),
      }),
    ];
    const table = buildSlotTable({ plugins, tools: { ...NO_SELECTION, profile: "other" } });
    expect(table.entries().map(({ name }) => name)).toEqual(["elsewhere", "listed"]);
  });

  test("[E-133] a claim never reaches a name that somebody has, a binding holds or the user excluded", async () => {
    const asked: string[] = [];
    const resolver = {
      resolveTool: (plugin: string, name: string) => {
        asked.push(`${plugin} ${name}`);
        return Promise.resolve(resolveTool(declareTool({ name })));
      },
    };
    const claiming = (prefixes: string[]) => ({ dynamic: { tools: [], prefixes } });
    const set = buildSlotTable({
      plugins: [
        FIRST_PARTY,
        pluginFacts("builtin.mcp", [], { provides: ["mcp"], ...claiming(["m"]) }),
        pluginFacts("early", [], claiming([""])),
        pluginFacts("late", [], claiming(["m", "l", "r", "b", "x"])),
      ],
      tools: { ...bindTo("bash", "nobody"), exclude: ["x_*"] },
    }).freeze({
      policy: {
        documentRules: [{ action: "plugin", resource: "*", effect: "allow" }],
        overlayRules: [],
        workspaceRoot: "/",
      },
      toolCalling: true,
    });
    const { signal } = new AbortController();
    const bound = [];
    for (const name of ["read", "bash", "x_one", "mail", "late_one", "late_one", "early_one"]) {
      bound.push((await set.resolve(name, resolver, signal))?.plugin);
    }
    expect(bound).toEqual([
      undefined,
      undefined,
      undefined,
      "builtin.mcp",
      "late",
      "late",
      "early",
    ]);
    expect(asked).toEqual(["builtin.mcp mail", "late late_one", "early early_one"]);
    expect(set.get("mail")?.plugin).toBe("builtin.mcp");
  });

  test("[B136] a plugin whose reload failed keeps its names from those that would take them over", () => {
    const SEARCH = declareTool({ name: "search" });
    const broken = (
      name: string,
      held: string[],
      tier: "untrusted" | "first_party" = "untrusted",
    ) => pluginFacts(name, [], { tier, held });
    const serve = (plugins: PluginFacts[], tools = NO_SELECTION) => {
      const table = buildSlotTable({ plugins, tools });
      return [
        table.ownerOf("search"),
        table.ownerOf("read"),
        table.unfit.map(({ plugin }) => plugin),
      ];
    };
    const early = thirdParty("early", SEARCH, READ);
    expect(serve([early, broken("late", ["search"])])).toEqual([undefined, "early", ["late"]]);
    expect(serve([broken("first", ["search"]), early])).toEqual(["early", "early", []]);
    expect(serve([broken("builtin.fs", ["read"], "first_party"), early])).toEqual([
      "early",
      undefined,
      ["builtin.fs"],
    ]);
    expect(serve([FIRST_PARTY, broken("swap", ["read"])], bindTo("read", "swap"))).toEqual([
      undefined,
      undefined,
      ["swap"],
    ]);
    expect(
      serve([broken("builtin.fs", ["read"], "first_party"), early], bindTo("read", "early")),
    ).toEqual(["early", "early", []]);
  });

  test("[T-004] [S-002] [E-072] [C-067] a binding swaps the implementation and grants no tier", () => {
    const swap = { ...READ, description: "another read" };
    const [entry] = buildSlotTable({
      plugins: [FIRST_PARTY, thirdParty("fastread", swap)],
      tools: bindTo("read", "fastread"),
    }).entries();
    expect(entry).toMatchObject({
      plugin: "fastread",
      tier: "untrusted",
      shadowed: ["builtin.fs"],
    });
  });

  test("[E-073] the slot's label rule stays when the replacement declares another", () => {
    const sly = declareTool({
      name: "read",
      parameters: stringSchema("path"),
      prepare: { mode: "static", resources: [{ action: "read", const: "README.md" }] },
    });
    const [entry] = buildSlotTable({
      plugins: [FIRST_PARTY, thirdParty("sly", sly)],
      tools: bindTo("read", "sly"),
    }).entries();
    expect(entry?.tool.prepare).toEqual(READ.prepare);
  });

  test.for([
    [
      "uses another action",
      declareTool({
        name: "read",
        parameters: stringSchema("path"),
        prepare: { mode: "static", resources: [{ action: "write", arg: "path" }] },
      }),
    ],
    ["drops a required argument", { ...READ, parameters: { type: "object", properties: {} } }],
    ["requires one more argument", { ...READ, parameters: stringSchema("path", "mode") }],
    [
      "prepares itself without being trusted",
      declareTool({ ...READ, prepare: { mode: "dynamic", actions: ["read"] } }),
    ],
    ["does not declare the tool", declareTool({ name: "unrelated" })],
  ] as const)("[E-073] a replacement that %s leaves the tool unavailable", ([, declaration]) => {
    const table = buildSlotTable({
      plugins: [FIRST_PARTY, thirdParty("bad", declaration)],
      tools: bindTo("read", "bad"),
    });
    expect(table.entries().map(({ name }) => name)).not.toContain("read");
    expect(table.unfit).toEqual([
      { plugin: "bad", problem: expect.stringContaining("it is unavailable") },
    ]);
  });

  test("[E-201] [S-245] tools exist in the profiles that their manifests name", () => {
    const plugins = [
      pluginFacts("builtin.a", [
        declareTool({ name: "here" }),
        declareTool({ name: "there", profile: ["cognitio"] }),
        declareTool({ name: "both", profile: ["cookie", "cognitio"] }),
      ]),
      thirdParty("other", declareTool({ name: "anywhere" }), declareTool({ name: "here" })),
    ];
    const bound = (profile: string) =>
      buildSlotTable({ plugins, tools: { ...NO_SELECTION, profile } })
        .entries()
        .map(({ name, plugin }) => `${plugin} ${name}`);
    expect(bound("cookie")).toEqual(["other anywhere", "builtin.a both", "builtin.a here"]);
    expect(bound("cognitio")).toEqual([
      "other anywhere",
      "builtin.a both",
      "other here",
      "builtin.a there",
    ]);
  });

  test.for([
    [{ include: ["a*"], exclude: [] }, ["ab", "ac"]],
    [{ include: [], exclude: ["a*"] }, ["b"]],
    [{ include: ["a*"], exclude: ["ac"] }, ["ab"]],
  ] as const)("selection %j leaves %j", ([selection, names]) => {
    const plugins = [thirdParty("p", ...["ab", "ac", "b"].map((name) => declareTool({ name })))];
    const table = buildSlotTable({ plugins, tools: { ...NO_SELECTION, ...selection } });
    expect(table.entries().map(({ name }) => name)).toEqual(names);
  });
});

describe("the tools of a run", () => {
  test("[T-007] definitions are sorted by name", () => {
    const set = freeze([
      { action: "plugin", resource: "*", effect: "allow" },
      { action: "read", resource: "*", effect: "allow" },
    ]);
    expect(set.specs.map(({ name }) => name)).toEqual(["alpha", "read", "zeta"]);
  });

  test("[T-005] [E-076] a tool shows only with an allow or ask rule that can reach it", () => {
    expect(
      freeze([{ action: "plugin", resource: "alpha *", effect: "allow" }]).specs,
    ).toMatchObject([{ name: "alpha" }]);
    expect(freeze([{ action: "read", resource: "*", effect: "deny" }]).specs).toEqual([]);
    expect(
      freeze([
        { action: "plugin", resource: "*", effect: "deny" },
        { action: "plugin", resource: "zeta", effect: "allow" },
      ]).specs,
    ).toMatchObject([{ name: "zeta" }]);
    expect(freeze([]).specs).toEqual([]);
  });

  test("[T-009] a schema that says nothing of further arguments is closed for model and check alike", () => {
    const set = freeze([{ action: "plugin", resource: "*", effect: "allow" }]);
    expect(set.get("alpha")?.spec.parameters["additionalProperties"]).toBe(false);
    expect(set.specs[0]?.parameters).toBe(set.get("alpha")?.spec.parameters);
  });

  test.for([
    [["goal_open"], ["goal_open"], true],
    [["goal_open", "skills_usable"], ["goal_open"], false],
    [["delegation_open", "messaging_enabled"], ["messaging_enabled", "delegation_open"], true],
    [["delegation_open"], [], false],
    [[], [], true],
  ] as const)("[E-037] a tool that needs %j shows where %j holds: %s", ([needs, holds, shown]) => {
    const facts = pluginFacts("builtin.x", [
      declareTool({ name: "gated", available_when: [...needs] }),
    ]);
    const policy = {
      documentRules: [{ action: "plugin" as const, resource: "*", effect: "allow" as const }],
      overlayRules: [],
      workspaceRoot: "/",
    };
    const table = buildSlotTable({ plugins: [facts], tools: NO_SELECTION });
    const set = table.freeze({ policy, toolCalling: true, available: new Set(holds) });
    expect(set.specs.map(({ name }) => name)).toEqual(shown ? ["gated"] : []);
    // What holds later changes nothing about a set that is frozen.
    table.freeze({ policy, toolCalling: true, available: new Set() });
    expect(set.get("gated") !== undefined).toBe(shown);
  });

  test("[E-036] only a shipped description is filled in, and it is what the run keeps", () => {
    const DESCRIBED = { description: "One of {{skills}}" };
    const table = buildSlotTable({
      plugins: [
        pluginFacts("builtin.x", [declareTool({ name: "shipped", ...DESCRIBED })]),
        thirdParty("other", declareTool({ name: "theirs", ...DESCRIBED })),
      ],
      tools: NO_SELECTION,
    });
    const policy = {
      documentRules: [{ action: "plugin" as const, resource: "*", effect: "allow" as const }],
      overlayRules: [],
      workspaceRoot: "/",
    };
    const describe = (text: string) => text.replace("{{skills}}", "two");
    const set = table.freeze({ policy, toolCalling: true, describe });
    expect(set.specs.map(({ description }) => description)).toEqual([
      "One of two",
      "One of {{skills}}",
    ]);
    expect(set.get("shipped")?.spec.description).toBe("One of two");
  });

  test("a model without tool calling gets none, and names stay known", () => {
    const table = buildSlotTable({ plugins: [FIRST_PARTY], tools: NO_SELECTION });
    const policy = {
      documentRules: [{ action: "read", resource: "*", effect: "allow" } as const],
      overlayRules: [],
      workspaceRoot: "/",
    };
    const set = table.freeze({ policy, toolCalling: false });
    expect([set.specs, set.get("read"), set.isKnown("read")]).toEqual([[], undefined, true]);
    expect(table.freeze({ policy, toolCalling: true }).pluginOf("read")).toBe("builtin.fs");
  });
});
