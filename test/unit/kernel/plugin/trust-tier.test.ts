import {
  isCookieError,
  type Manifest,
  type PermissionAction,
  type ToolDeclaration,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { applyTier } from "../../../../kernel/src/plugin/trust-tier.ts";
import { manifestOf } from "./open-host.ts";

const TOOL: ToolDeclaration = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
  permission_name: "look",
};

function judge(manifest: Partial<Manifest>, tier: TrustTier, grants: readonly string[] = []) {
  const diagnostics: string[] = [];
  const claims = applyTier(manifestOf(manifest), {
    name: "sample",
    tier,
    grants: new Set(grants),
    toolTimeoutMs: 30_000,
    slotActions: new Map([["bash", new Set<PermissionAction>(["bash"])]]),
    diagnose: (text) => diagnostics.push(text),
  });
  return { ...claims, diagnostics };
}

const judgeTool = (tool: Partial<ToolDeclaration>, tier: TrustTier, grants: string[] = []) => {
  const { tools, diagnostics } = judge({ tools: [{ ...TOOL, ...tool }] }, tier, grants);
  return { tool: tools[0], diagnostics };
};

describe("defaults", () => {
  test("[T-001] absent members get the strict default", () => {
    expect(judgeTool({}, "untrusted").tool).toMatchObject({
      concurrency: "exclusive",
      output: { mode: "single" },
      truncation: "bounded",
      timeoutMs: 30_000,
      prepare: { mode: "static", resources: [{ action: "plugin", none: true }] },
      displayArgument: null,
      revalidate: false,
      retrySafe: false,
    });
  });

  test("the short form becomes a one-resource static preparation and the display argument", () => {
    expect(judgeTool({ primary_resource_param: "at" }, "untrusted").tool).toMatchObject({
      prepare: { mode: "static", resources: [{ action: "plugin", arg: "at" }] },
      displayArgument: "at",
    });
  });
});

/** Y: may declare, G: only with the grant, -: never; the table of section 7, row by row. */
const TABLE: readonly (readonly [
  row: string,
  cells: string,
  grant: string,
  has: (tier: TrustTier, grants: string[]) => boolean,
])[] = [
  ["slot actions when bound", "YYY", "", (...of) => loads({ tools: [slotTool("static")] }, ...of)],
  [
    "any other permission action",
    "YG-",
    "write",
    (...of) => loads({ tools: [acting("write")] }, ...of),
  ],
  [
    "named outputs",
    "YYY",
    "",
    (...of) => declared({ output: NAMED }, ...of)?.output.mode === "named",
  ],
  [
    "serialisation keys",
    "YYY",
    "",
    (...of) => loads({ tools: [{ ...TOOL, prepare: KEYED }] }, ...of),
  ],
  [
    "stdin",
    "YYY",
    "",
    (...of) => declared({ stdin_argument: "at" }, ...of)?.declaration.stdin_argument === "at",
  ],
  [
    "dynamic prepare of plugin",
    "YYY",
    "",
    (...of) => loads({ tools: [dynamicTool("plugin")] }, ...of),
  ],
  [
    "dynamic prepare of a slot",
    "YY-",
    "",
    (...of) => loads({ tools: [slotTool("dynamic")] }, ...of),
  ],
  [
    "concurrency",
    "YY-",
    "",
    (...of) => declared({ concurrency: "parallel" }, ...of)?.concurrency === "parallel",
  ],
  ["retry_safe", "YY-", "", (...of) => declared({ retry_safe: true }, ...of)?.retrySafe === true],
  [
    "result_truncation",
    "YG-",
    "result_truncation",
    (...of) => declared({ result_truncation: "opt_out" }, ...of)?.truncation === "opt_out",
  ],
  [
    "timeout_ms: null",
    "YG-",
    "timeout_ms",
    (...of) => declared({ timeout_ms: null }, ...of)?.timeoutMs === null,
  ],
  [
    "dynamic_tools",
    "YY-",
    "",
    (...of) => judge({ capabilities: { dynamic_tools: true } }, ...of).dynamicTools,
  ],
  [
    "instructions",
    "YY-",
    "",
    (...of) => judge({ instructions: "Do." }, ...of).instructions === "Do.",
  ],
  [
    "env.inherit names",
    "YG-",
    "env.inherit",
    (...of) => judge({ env: { inherit: ["A"] } }, ...of).inheritEnv.includes("A"),
  ],
  [
    'env.inherit "*"',
    "Y--",
    "env.inherit",
    (...of) => judge({ env: { inherit: "*" } }, ...of).inheritEnv === "*",
  ],
  [
    "runtime.group",
    "Y--",
    "",
    (...of) => loads({ runtime: { kind: "node", entry: "m.js", group: "core" } }, ...of),
  ],
  ["provides", "Y--", "", (...of) => loads({ provides: ["mcp"] }, ...of)],
  [
    "kernel_config",
    "YG-",
    "kernel_config",
    (...of) => judge({ kernel_config: ["tools"] }, ...of).kernelConfig.length === 1,
  ],
  ...(
    [
      ["artifacts.write", "YYY"],
      ["artifacts.read", "YYY"],
      ["media", "YYY"],
      ["session.info", "YYY"],
      ["permission.ask", "YY-"],
      ["skills.read", "YY-"],
      ["delegation", "YG-"],
      ["messaging", "YG-"],
      ["goals", "YG-"],
      ["skills.commit", "Y--"],
    ] as const
  ).map(
    ([service, cells]) =>
      [
        service,
        cells,
        service,
        (tier: TrustTier, grants: string[]) =>
          judge({ capabilities: { host: [service] } }, tier, grants).services.includes(service),
      ] as const,
  ),
];
const NAMED = { mode: "named" as const, streams: ["out", "err"] };
const KEYED = {
  mode: "static" as const,
  resources: [{ action: "plugin" as const, arg: "at" }],
  serialize: [{ arg: "at" }],
};

function acting(action: PermissionAction): ToolDeclaration {
  return { ...TOOL, prepare: { mode: "static", resources: [{ action, arg: "at" }] } };
}
function dynamicTool(action: PermissionAction): ToolDeclaration {
  return { ...TOOL, prepare: { mode: "dynamic", actions: [action] } };
}
function slotTool(mode: "static" | "dynamic"): ToolDeclaration {
  return { ...(mode === "static" ? acting("bash") : dynamicTool("bash")), name: "bash" };
}
function declared(tool: Partial<ToolDeclaration>, tier: TrustTier, grants: string[]) {
  return judgeTool(tool, tier, grants).tool;
}
function loads(manifest: Partial<Manifest>, tier: TrustTier, grants: string[]): boolean {
  try {
    judge(manifest, tier, grants);
    return true;
  } catch (error) {
    if (isCookieError(error, "invalid_declaration")) return false;
    throw error;
  }
}

describe("the table of tiers", () => {
  test.for(TABLE)("[E-203] [E-112] %s: %s", ([, cells, grant, has]) => {
    const tiers = ["first_party", "trusted", "untrusted"] as const;
    const seen = tiers.map((tier) => {
      if (has(tier, [])) return "Y";
      return grant !== "" && has(tier, [grant]) ? "G" : "-";
    });
    expect(seen.join("")).toBe(cells);
  });
});

describe("clamping", () => {
  const GREEDY = {
    concurrency: "parallel",
    result_truncation: "opt_out",
    timeout_ms: null,
    retry_safe: true,
  } as const;

  test.for<[TrustTier, string[], object, number]>([
    [
      "first_party",
      [],
      { concurrency: "parallel", truncation: "opt_out", timeoutMs: null, retrySafe: true },
      0,
    ],
    [
      "trusted",
      [],
      { concurrency: "parallel", truncation: "bounded", timeoutMs: 30_000, retrySafe: true },
      2,
    ],
    [
      "trusted",
      ["result_truncation", "timeout_ms"],
      { concurrency: "parallel", truncation: "opt_out", timeoutMs: null, retrySafe: true },
      0,
    ],
    [
      "untrusted",
      [],
      { concurrency: "exclusive", truncation: "bounded", timeoutMs: 30_000, retrySafe: false },
      4,
    ],
  ])(
    "[T-003] [S-119] [E-114] a tool of tier %s with grants %j",
    ([tier, grants, expected, count]) => {
      const { tool, diagnostics } = judgeTool(GREEDY, tier, grants);
      expect(tool).toMatchObject(expected);
      expect(diagnostics).toHaveLength(count);
    },
  );

  test("[E-114] an untrusted timeout is bounded by tool_timeout_ms, a shorter one stands", () => {
    expect(judgeTool({ timeout_ms: 90_000 }, "untrusted").tool?.timeoutMs).toBe(30_000);
    expect(judgeTool({ timeout_ms: 5 }, "untrusted").tool?.timeoutMs).toBe(5);
    expect(judgeTool({ timeout_ms: 90_000 }, "trusted").tool?.timeoutMs).toBe(90_000);
  });

  test.for<[TrustTier, string[], object]>([
    [
      "first_party",
      [],
      {
        inheritEnv: ["HOME"],
        instructions: "Look first.",
        kernelConfig: ["tool_output"],
        services: ["artifacts.read", "skills.read", "goals", "skills.commit"],
      },
    ],
    [
      "trusted",
      [],
      {
        inheritEnv: [],
        instructions: "Look first.",
        kernelConfig: [],
        services: ["artifacts.read", "skills.read"],
      },
    ],
    [
      "trusted",
      ["env.inherit", "kernel_config", "goals"],
      {
        inheritEnv: ["HOME"],
        instructions: "Look first.",
        kernelConfig: ["tool_output"],
        services: ["artifacts.read", "skills.read", "goals"],
      },
    ],
    [
      "untrusted",
      ["env.inherit"],
      { inheritEnv: [], instructions: null, kernelConfig: [], services: ["artifacts.read"] },
    ],
  ])(
    "[T-003] [E-114] what a manifest of tier %s with grants %j gets",
    ([tier, grants, expected]) => {
      const manifest = {
        env: { inherit: ["HOME"] },
        instructions: "Look first.",
        kernel_config: ["tool_output"],
        capabilities: {
          host: ["artifacts.read", "skills.read", "goals", "skills.commit"] as const,
        },
      };
      expect(judge(manifest as unknown as Partial<Manifest>, tier, grants)).toMatchObject(expected);
    },
  );

  test("[E-114] the whole environment is the first party's alone", () => {
    const manifest = { env: { inherit: "*" as const } };
    expect(judge(manifest, "first_party").inheritEnv).toBe("*");
    expect(judge(manifest, "trusted", ["env.inherit"]).inheritEnv).toEqual([]);
  });
});

describe("refusing", () => {
  test.for<[string, Partial<Manifest>]>([
    ["name", { name: "builtin.sample" }],
    ["provides", { provides: ["skills"] }],
    ["runtime.group", { runtime: { kind: "node", entry: "x.mjs", group: "core" } }],
  ])("[E-114] %s beyond the tier fails the plugin and is named", ([member, manifest]) => {
    expect(() => judge(manifest, "trusted")).toThrow(
      expect.objectContaining({ code: "invalid_declaration", data: { member } }),
    );
    expect(() => judge(manifest, "first_party")).not.toThrow();
  });

  const dynamic = (action: PermissionAction, name = "look") => ({
    name,
    prepare: { mode: "dynamic" as const, actions: [action] },
  });
  const fixed = (action: PermissionAction, name = "look") => ({
    name,
    prepare: { mode: "static" as const, resources: [{ action, arg: "at" }] },
  });

  test.for<[string, Partial<ToolDeclaration>, TrustTier, string[], boolean]>([
    ["a foreign action, untrusted", fixed("write"), "untrusted", [], false],
    ["a foreign action, trusted", fixed("write"), "trusted", [], false],
    ["a granted action, trusted", dynamic("write"), "trusted", ["write"], true],
    ["the slot's action, untrusted and static", fixed("bash", "bash"), "untrusted", [], true],
    ["the slot's action, untrusted and dynamic", dynamic("bash", "bash"), "untrusted", [], false],
    ["the slot's action, trusted and dynamic", dynamic("bash", "bash"), "trusted", [], true],
    ["the plugin action, untrusted and dynamic", dynamic("plugin"), "untrusted", [], true],
    ["any action, first party", dynamic("delegate"), "first_party", [], true],
  ])("[S-002] [E-115] %s", ([, tool, tier, grants, accepted]) => {
    const act = () => judgeTool(tool, tier, grants);
    if (accepted) expect(act).not.toThrow();
    else expect(act).toThrow(expect.objectContaining({ code: "invalid_declaration" }));
  });
});

describe("events", () => {
  test("[E-140] a filter that names what is never heard says so and filters on", () => {
    const events = ["run_started", "text_delta", "run_ended"];
    const { events: claims, diagnostics } = judge(
      { capabilities: { subscribe_events: events, publish_bus: true } },
      "untrusted",
    );
    expect(claims).toEqual({
      events: new Set(events),
      bus: false,
      publishBus: true,
      publishSessionEvents: false,
    });
    expect(diagnostics).toEqual([
      "capabilities.subscribe_events: text_delta is never sent to plugins",
      "capabilities.subscribe_events: this kernel knows no event run_ended",
    ]);
  });
});
