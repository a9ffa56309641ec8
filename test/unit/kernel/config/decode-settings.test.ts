import { describe, expect, test } from "vitest";
import { loadToml, makeScenario, tomlFailure } from "./scenario.ts";

const settings = async (toml: string) => (await loadToml(toml)).config;
const keyOf = async (toml: string) => (await tomlFailure(toml)).key;

describe("defaults", () => {
  test("[C-241] [C-039] tool output shows 2000 lines and 51200 bytes", async () => {
    expect((await settings("")).toolOutput).toEqual({
      maxLines: 2000,
      maxBytes: 51_200,
      maxRetainedBytes: 268_435_456,
    });
  });

  test("[C-043] compaction starts by itself at 70 percent", async () => {
    expect((await settings("[context_compaction]")).contextCompaction).toEqual({
      auto: true,
      trigger: { kind: "percent", percent: 70 },
      maxSummaryBytes: 262_144,
      keepRecentTokens: 16_384,
    });
  });

  test("[C-044] caches live an hour for tools and system, five minutes for the rest", async () => {
    expect((await settings("")).promptCaching).toEqual({
      enabled: true,
      systemTtl: "one_hour",
      toolsTtl: "one_hour",
      rollingTtl: "five_minutes",
    });
  });

  test("[C-045] [S-035] session titles have four settings", async () => {
    expect((await settings("")).sessionTitle).toEqual({
      maxChars: 80,
      maxInputMessages: 4,
      generateOnFirstTurn: true,
      fallbackToInputExcerpt: true,
    });
  });

  test("[C-046] delegation has four settings", async () => {
    expect((await settings("")).delegation).toEqual({
      maxDepth: 3,
      maxConcurrency: 4,
      maxResidentSubagents: 20,
      idleEvictionAfterMs: 3_600_000,
    });
  });

  test("[C-047] messaging has five settings", async () => {
    expect((await settings("")).messaging).toEqual({
      enabled: true,
      maxBodyBytes: 32_768,
      maxPendingPerSession: 32,
      maxHops: 0,
      maxInflightPerPair: 4,
    });
  });

  test("approvals wait 30 s, context files have 32 KiB, fetches may go anywhere", async () => {
    const { approval, context, webfetch, modelRetry } = await settings("");
    expect({ approval, context, webfetch, modelRetry }).toEqual({
      approval: { timeoutMs: 30_000 },
      context: { agentsMd: true, agentsMdMaxBytes: 32_768 },
      webfetch: { privateAddresses: "allow" },
      modelRetry: { standardRetries: 3, overloadRetries: 5, backoffCeilingMs: 60_000 },
    });
  });
});

describe("rules", () => {
  test.for([
    ["[server]\nport = 65536", "server.port"],
    ["[server]\nhost = ''", "server.host"],
    ["[server]\nhost = '0.0.0.0'", "server.host"],
    ["[server]\nhost = 'localhost'", "server.host"],
    ["[tool_output]\nmax_lines = 0", "tool_output.max_lines"],
    ["[tool_output]\nmax_bytes = 0", "tool_output.max_bytes"],
    ["[tool_output]\nmax_retained_bytes = 10", "tool_output.max_retained_bytes"],
    ["[approval]\ntimeout_ms = 0", "approval.timeout_ms"],
    ["[context_compaction]\nmax_summary_bytes = 0", "context_compaction.max_summary_bytes"],
    ["[context_compaction]\nmax_summary_bytes = 2097153", "context_compaction.max_summary_bytes"],
    ["[session_title]\nmax_chars = 0", "session_title.max_chars"],
    ["[session_title]\nmax_input_messages = 0", "session_title.max_input_messages"],
    ["[delegation]\nmax_depth = 0", "delegation.max_depth"],
    ["[delegation]\nmax_concurrency = 0", "delegation.max_concurrency"],
    ["[delegation]\nmax_resident_subagents = -1", "delegation.max_resident_subagents"],
    ["[messaging]\nmax_body_bytes = -1", "messaging.max_body_bytes"],
    ["[messaging]\nmax_pending_per_session = -1", "messaging.max_pending_per_session"],
    ["[messaging]\nmax_inflight_per_pair = -1", "messaging.max_inflight_per_pair"],
    ["[model_retry]\nbackoff_ceiling_ms = 0", "model_retry.backoff_ceiling_ms"],
    ["[context]\nagents_md_max_bytes = 0", "context.agents_md_max_bytes"],
    ["[context]\nagents_md_max_bytes = 262145", "context.agents_md_max_bytes"],
    ["[budget]\nmax_tokens = 0", "budget.max_tokens"],
    ["[budget]\nmax_turns = 0", "budget.max_turns"],
    ["[budget]\nmax_cost_usd = '0'", "budget.max_cost_usd"],
    ["[budget]\nmax_cost_usd = '-1'", "budget.max_cost_usd"],
    ["[budget]\nmax_wall = '0s'", "budget.max_wall"],
  ] as const)("%j is out of range", async ([toml, key]) => {
    expect(await tomlFailure(toml)).toMatchObject({ code: "invalid_value", key, line: 2 });
  });

  test("[C-038] port 0 is accepted for an ephemeral port", async () => {
    expect((await settings("[server]\nport = 0")).server.port).toBe(0);
  });

  test("a float is no integer", async () => {
    expect(await tomlFailure("[server]\nport = 80.0")).toMatchObject({ code: "invalid_type" });
  });

  test.for([
    ["{ percent = 1 }", { kind: "percent", percent: 1 }],
    ["{ percent = 99 }", { kind: "percent", percent: 99 }],
    ["{ buffer_tokens = 1 }", { kind: "buffer_tokens", bufferTokens: 1 }],
  ] as const)("[C-041] trigger %s is accepted", async ([trigger, expected]) => {
    const { contextCompaction } = await settings(`[context_compaction]\ntrigger = ${trigger}`);
    expect(contextCompaction.trigger).toEqual(expected);
  });

  test.for([
    ["{ percent = 0 }", "invalid_value"],
    ["{ percent = 100 }", "invalid_value"],
    ["{ buffer_tokens = 0 }", "invalid_value"],
    ["{ percent = 50, buffer_tokens = 5 }", "conflict"],
    ["{}", "missing_key"],
  ] as const)("[C-041] trigger %s is refused", async ([trigger, code]) => {
    expect(await tomlFailure(`[context_compaction]\ntrigger = ${trigger}`)).toMatchObject({ code });
  });

  test("[C-042] trigger and its alias exclude each other", async () => {
    const both = "[context_compaction]\ntrigger = { percent = 5 }\nbuffer_tokens = 5";
    expect(await tomlFailure(both)).toMatchObject({
      code: "conflict",
      key: "context_compaction.buffer_tokens",
      line: 3,
    });
    expect(
      (await settings("[context_compaction]\nbuffer_tokens = 5")).contextCompaction,
    ).toMatchObject({ trigger: { kind: "buffer_tokens", bufferTokens: 5 } });
  });

  test.for([
    ["tools_ttl = 'five_minutes'", "prompt_caching.tools_ttl"],
    ["system_ttl = 'five_minutes'\nrolling_ttl = 'one_hour'", "prompt_caching.rolling_ttl"],
  ] as const)("[C-044] an hour may not follow five minutes: %s", async ([lines, key]) => {
    expect(await keyOf(`[prompt_caching]\n${lines}`)).toBe(key);
  });

  test("[C-044] the order does not matter while caching is off", async () => {
    const toml = "[prompt_caching]\nenabled = false\ntools_ttl = 'five_minutes'";
    expect((await settings(toml)).promptCaching.toolsTtl).toBe("five_minutes");
  });

  test.for([
    ["250ms", 250],
    ["2s", 2000],
    ["3m", 180_000],
    ["1d", 86_400_000],
    ["0s", 0],
    ["104249991d", 9_007_199_222_400_000],
  ] as const)("[C-046] the duration %s is accepted", async ([text, ms]) => {
    const { delegation } = await settings(`[delegation]\nidle_eviction_after = "${text}"`);
    expect(delegation.idleEvictionAfterMs).toBe(ms);
  });

  test.for([
    "1",
    "1h30m",
    "1.5h",
    "-1s",
    " 1s",
    "1 s",
    "1w",
    "",
    "104249992d",
    `${"9".repeat(40)}s`,
  ])("[C-046] the duration %j is refused", async (text) => {
    expect(await keyOf(`[delegation]\nidle_eviction_after = "${text}"`)).toBe(
      "delegation.idle_eviction_after",
    );
  });

  test("[C-048] no, several and unlimited retries are accepted per error class", async () => {
    const toml = "[model_retry]\nstandard_retries = 0\noverload_retries = -1";
    expect((await settings(toml)).modelRetry).toEqual({
      standardRetries: 0,
      overloadRetries: -1,
      backoffCeilingMs: 60_000,
    });
  });

  test("[C-056] mcp has only servers", async () => {
    expect(await tomlFailure("[mcp]\ntimeout_ms = 5")).toMatchObject({
      code: "unknown_key",
      key: "mcp.timeout_ms",
    });
  });
});

describe("pricing", () => {
  const price = (rate: string) =>
    `[pricing.models."p/m"]\ninput_per_million_usd = ${rate}\noutput_per_million_usd = "15"`;

  test("[C-051] a quoted decimal is kept as written", async () => {
    const { pricing } = await settings(price('"+1.5e-3"'));
    expect(pricing.models.get("p/m")).toEqual({
      inputPerMillionUsd: "+1.5e-3",
      outputPerMillionUsd: "15",
    });
  });

  test.for([
    ["1.5", "invalid_type"],
    ["1", "invalid_type"],
    ['"-1"', "invalid_value"],
    ['"1e-13"', "invalid_value"],
    ['"1e40"', "invalid_value"],
    ['"nan"', "invalid_value"],
    ['"1,5"', "invalid_value"],
  ] as const)("[C-051] %s is refused", async ([rate, code]) => {
    expect(await tomlFailure(price(rate))).toMatchObject({
      code,
      key: 'pricing.models."p/m".input_per_million_usd',
    });
  });

  test("[C-008] the key of a price splits at its first slash", async () => {
    const { pricing } = await settings('[pricing.models."custom.x/org/coder:7b"]');
    expect([...pricing.models.keys()]).toEqual(["custom.x/org/coder:7b"]);
    expect(await tomlFailure('[pricing.models."nomodel"]')).toMatchObject({
      problem: "invalid model key",
    });
  });
});

test.for([
  [`p/${"m".repeat(384)}`, true],
  [`p/${"m".repeat(385)}`, false],
  [`${"p".repeat(127)}/${"m".repeat(384)}`, true],
  [`${"p".repeat(128)}/${"m".repeat(384)}`, false],
  ["p/m", true],
  ["p/", false],
  ["/m", false],
] as const)("[C-006] model key %s: %s", async ([key, valid]) => {
  const toml = `[pricing.models."${key}"]`;
  const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
  expect(await outcome).toEqual(
    valid ? "ok" : expect.objectContaining({ problem: "invalid model key" }),
  );
});

describe("a workspace can only tighten", () => {
  test("[C-245] each budget cap is the smaller one", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": "[budget]\nmax_cost_usd = '2'\nmax_tokens = 10\nmax_wall = '1h'" },
      workspace: {
        "config.toml":
          "[budget]\nmax_cost_usd = '1.50'\nmax_tokens = 20\nmax_turns = 3\nmax_wall = '2h'",
      },
    });
    expect((await scenario.load()).config.budget).toEqual({
      maxCostUsd: "1.50",
      maxTokens: 10,
      maxTurns: 3,
      maxWallMs: 3_600_000,
    });
  });

  test.for([
    ["ask", "allow", "ask"],
    ["ask", "deny", "deny"],
    ["deny", "ask", "deny"],
  ] as const)("[C-242] private addresses: %s and %s give %s", async ([user, workspace, result]) => {
    const table = (effect: string) => `[webfetch]\nprivate_addresses = "${effect}"`;
    const scenario = await makeScenario({
      user: { "config.toml": table(user) },
      workspace: { "config.toml": table(workspace) },
    });
    expect((await scenario.load()).config.webfetch.privateAddresses).toBe(result);
  });
});
