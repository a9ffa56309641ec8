import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentFailure, loadAgent, makeScenario } from "./scenario.ts";

const HEAD = "description: Helps\nmode: subagent\nenabled: true\nmodels: []\n";
const doc = (head = HEAD, body = "Do it.\n") => `---\n${head}---\n${body}`;
const rules = (permissions: string) => doc(`${HEAD}permissions:\n${permissions}\n`);

describe("files", () => {
  test("[C-071] the file name is the id; other regular files are ignored", async () => {
    const scenario = await makeScenario({
      user: { "agents/a-1.md": doc(), "agents/notes.txt": "x", "agents/.DS_Store": "x" },
    });
    expect([...(await scenario.load()).agents.keys()]).toEqual(["a-1", "explore"]);
  });

  test.for([
    ["a".repeat(64), true],
    ["a".repeat(65), false],
    ["9", true],
    ["a-b-c", true],
    ["-a", false],
    ["a-", false],
    ["a--b", false],
    ["Agent", false],
    ["a_b", false],
    [".hidden", false],
  ] as const)("[C-006] [C-007] [C-071] the agent id %s: %s", async ([id, valid]) => {
    const outcome = valid ? loadAgent(doc(), id).then(() => "ok") : agentFailure(doc(), id);
    expect(await outcome).toEqual(
      valid ? "ok" : expect.objectContaining({ code: "agent_filename" }),
    );
  });

  test.for(["sub", "sub.md"])(
    "[C-071] a directory %s among the documents is unsafe",
    async (name) => {
      const scenario = await makeScenario({ user: { "agents/a.md": doc() } });
      await mkdir(join(scenario.root, "agents", name));
      expect(await scenario.failure()).toMatchObject({ code: "unsafe_path" });
    },
  );

  test("[C-072] a workspace document replaces the user's whole", async () => {
    const scenario = await makeScenario({
      user: { "agents/a.md": rules("  read: allow") },
      workspace: { "agents/a.md": doc(HEAD.replace("Helps", "Other")) },
    });
    expect((await scenario.load()).agents.get("a")).toMatchObject({
      source: "workspace",
      description: "Other",
      permissions: [],
    });
  });

  test("[C-072] rules between documents are checked on what is left after merging", async () => {
    const scenario = await makeScenario({
      user: {
        "agents/a.md": rules("  delegate: { b: allow }"),
        "agents/b.md": doc(HEAD.replace("true", "false")),
      },
      workspace: { "agents/b.md": doc() },
    });
    await expect(scenario.load()).resolves.toBeDefined();
    expect(await scenario.failure({ trust: "stored" })).toMatchObject({
      code: "agent_delegation_ineligible",
      layer: "user",
    });
  });

  test("[C-022] a broken user document is an error although the workspace replaces it", async () => {
    const scenario = await makeScenario({
      user: { "agents/a.md": "broken" },
      workspace: { "agents/a.md": doc() },
    });
    expect(await scenario.failure()).toMatchObject({ code: "agent_frontmatter", layer: "user" });
  });
});

describe("shape", () => {
  test("a minimal document has every default", async () => {
    expect(await loadAgent(doc())).toEqual({
      id: "helper",
      source: "user",
      description: "Helps",
      mode: "subagent",
      enabled: true,
      models: [],
      maxOutputTokens: 0,
      timeoutMs: 0,
      permissions: [],
      prompt: "Do it.\n",
      written: {
        path: expect.stringMatching(/agents\/helper\.md$/) as string,
        ruleLines: [],
      },
      documentFingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      promptFingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
  });

  test("[C-073] line ends do not matter", async () => {
    const { written: _, ...unix } = await loadAgent(doc(HEAD, "One\n\nTwo\n"));
    for (const end of ["\r\n", "\r"]) {
      const loaded = await loadAgent(doc(HEAD, "One\n\nTwo\n").replaceAll("\n", end));
      expect(loaded).toMatchObject(unix);
    }
  });

  test("each rule is known by its line", async () => {
    const permissions =
      "permissions:\n  read: allow\n  bash:\n    '*': ask\n\n    'git *': allow\n";
    const { written, permissions: rules } = await loadAgent(doc(`${HEAD}${permissions}`));
    const from = HEAD.split("\n").length;
    expect(rules.map(({ resource }) => resource)).toEqual(["*", "*", "git *"]);
    expect(written?.ruleLines).toEqual([from + 2, from + 4, from + 6]);
  });

  test.for([
    ["", "the first line must be ---"],
    ["hello", "the first line must be ---"],
    [" ---\n---\nx", "the first line must be ---"],
    [`---\n${HEAD}`, "the closing line --- is missing"],
    [`---\n${HEAD} ---\nx`, "the closing line --- is missing"],
  ] as const)("[C-073] %j is refused by naming the fence", async ([text, problem]) => {
    expect(await agentFailure(text)).toMatchObject({ code: "agent_frontmatter", line: 1, problem });
  });

  test("[C-073] the first closing fence ends the frontmatter", async () => {
    expect((await loadAgent(doc(HEAD, "a\n---\nb\n"))).prompt).toBe("a\n---\nb\n");
  });

  test("[C-077] trailing newlines become one, and a missing one stays missing", async () => {
    expect((await loadAgent(doc(HEAD, "\n a \n\n\n"))).prompt).toBe("\n a \n");
    expect((await loadAgent(doc(HEAD, "a"))).prompt).toBe("a");
  });

  test.for(["", "\n\n", " \t\n"])("[C-077] the body %j is blank", async (body) => {
    expect(await agentFailure(doc(HEAD, body))).toMatchObject({ code: "agent_body_empty" });
  });

  test("fingerprints change with what they stand for", async () => {
    const one = await loadAgent(doc());
    const renamed = await loadAgent(doc(), "other");
    const spaced = await loadAgent(doc(HEAD.replace("mode: ", "mode:  ")));
    const prompted = await loadAgent(doc(HEAD, "Do that.\n"));
    expect(one.documentFingerprint).not.toBe(one.promptFingerprint);
    expect(renamed.promptFingerprint).toBe(one.promptFingerprint);
    expect(renamed.documentFingerprint).not.toBe(one.documentFingerprint);
    expect(spaced.promptFingerprint).toBe(one.promptFingerprint);
    expect(spaced.documentFingerprint).not.toBe(one.documentFingerprint);
    expect(prompted.promptFingerprint).not.toBe(one.promptFingerprint);
  });
});

describe("limits", () => {
  const KIB = 1024;

  test.for([
    ["a file of over 256 KiB", doc(`${HEAD}# ${"x".repeat(127 * KIB)}\n`, "y".repeat(130 * KIB))],
    ["frontmatter of over 128 KiB", doc(`${HEAD}# ${"x".repeat(128 * KIB)}\n`)],
    ["a body of over 128 KiB", doc(HEAD, "é".repeat(64 * KIB + 1))],
    ["over 256 list entries", doc(HEAD.replace("[]", `[${"{},".repeat(257)}]`))],
    ["over 256 map entries", rules(`  read: {${count(257, (n) => `a${n}: ask`)}}`)],
    ["depth over 16", rules(`  read: ${"{a: ".repeat(16)}1${"}".repeat(16)}`)],
    ["hostile flow depth", rules(`  read: ${"[".repeat(60_000)}`)],
    ["hostile block depth", rules(`  read:\n   ${"- ".repeat(60_000)}a`)],
    ["hostile key depth", rules(`  read:\n   ${"? ".repeat(60_000)}a`)],
  ] as const)("[C-074] %s is refused", async ([, text]) => {
    expect(await agentFailure(text)).toMatchObject({ code: "agent_limit" });
  });

  test.for([
    ["a body of 128 KiB", doc(HEAD, "é".repeat(64 * KIB))],
    ["256 entries", rules(`  read: {${count(256, (n) => `a${n}: ask`)}}`)],
  ] as const)("[C-074] [C-004] %s is accepted", async ([, text]) => {
    await expect(loadAgent(text)).resolves.toBeDefined();
  });
});

describe("YAML", () => {
  test.for([
    ["an anchor", `${HEAD}permissions: &a {}\n`],
    ["an alias", `${HEAD}permissions: *a\n`],
    ["a tag", `${HEAD}permissions: !!map {}\n`],
    ["a string tag", HEAD.replace("Helps", "!!str Helps")],
    ["a merge key", `${HEAD}<<: {}\n`],
    ["a duplicate key", `${HEAD}mode: all\n`],
    ["a directive", `%YAML 1.1\n${HEAD}`],
    ["a further document", `${HEAD}--- {}\n`],
    ["a document end", `${HEAD}...\n`],
    ["an interpolation", HEAD.replace("Helps", "${env:HOME}")],
    ["a syntax error", `${HEAD}permissions: {\n`],
    ["a key that is a list", `${HEAD}[a]: b\n`],
  ] as const)("[C-075] %s is refused with its line", async ([, head]) => {
    const error = await agentFailure(doc(head));
    expect(error.code).toBe("agent_frontmatter");
    expect(error.line).toBeGreaterThanOrEqual(2);
  });

  test("[C-075] an interpolation in the prompt is refused", async () => {
    expect(await agentFailure(doc(HEAD, "Use ${env:KEY}."))).toMatchObject({
      code: "agent_frontmatter",
      line: 7,
    });
  });

  test("[C-031] no error quotes the text", async () => {
    for (const head of [
      "hunter2: [",
      `${HEAD}hunter2 hunter2\n`,
      `${HEAD}a: "hunter2\n`,
      HEAD.replace("subagent", "hunter2"),
    ]) {
      const error = await agentFailure(doc(head.replace("hunter2: [", "a: [hunter2 hunter2: ")));
      expect(error.message).not.toContain("hunter2");
    }
  });

  test("a yes or no in the old spelling is a string", async () => {
    expect(await agentFailure(doc(HEAD.replace("true", "yes")))).toMatchObject({
      code: "invalid_type",
      key: "enabled",
      line: 4,
    });
  });
});

describe("frontmatter", () => {
  test.for(["description", "mode", "enabled", "models"])("[C-078] %s is required", async (key) => {
    const head = HEAD.replace(new RegExp(`^${key}:.*\n`, "m"), "");
    expect(await agentFailure(doc(head))).toMatchObject({ code: "missing_key", key });
  });

  test("[C-078] a missing key says that it is required, and what it may be", async () => {
    const head = HEAD.replace(/^mode:.*\n/m, "");
    expect((await agentFailure(doc(head))).message).toMatch(
      /: mode: is required; add one of primary, subagent, all, internal$/,
    );
  });

  test("[C-078] empty frontmatter lacks the first required key", async () => {
    expect(await agentFailure(doc(""))).toMatchObject({ code: "missing_key", key: "description" });
  });

  test.for([
    ["x".repeat(512), true],
    ["x".repeat(513), false],
    ['""', false],
    ['"a\\u0007"', false],
  ] as const)("description %s: %s", async ([description, valid]) => {
    const text = doc(HEAD.replace("Helps", description));
    const outcome = valid ? loadAgent(text).then(() => "ok") : agentFailure(text);
    expect(await outcome).toEqual(valid ? "ok" : expect.objectContaining({ key: "description" }));
  });

  test("models keep their order and their variants", async () => {
    const models =
      "\n  - { model: a/b }\n  - { model: a/c/d, variant: base }\n  - { model: x/y, variant: high }\n  - { model: x/z, variant: null }";
    expect((await loadAgent(doc(HEAD.replace(" []", models)))).models).toEqual([
      { model: "a/b", variant: null },
      { model: "a/c/d", variant: "base" },
      { model: "x/y", variant: "high" },
      { model: "x/z", variant: null },
    ]);
  });

  test.for([
    ["a model twice", "[{model: a/b}, {model: a/b, variant: high}]", "models[1].model"],
    ["257 models", `[${count(257, (n) => `{model: a/m${n}}`)}]`, "models"],
    ["no key", "[{variant: high}]", "models[0].model"],
    ["a bad key", "[{model: nothing}]", "models[0].model"],
    ["a bad variant", "[{model: a/b, variant: Not A}]", "models[0].variant"],
    ["an unknown member", "[{model: a/b, varient: x}]", "models[0].varient"],
    ["a bare text", "[a/b]", "models[0]"],
  ] as const)("[C-079] %s is refused", async ([, models, key]) => {
    expect(await agentFailure(doc(HEAD.replace("[]", models)))).toMatchObject({ key });
  });

  test.for([
    ["v".repeat(64), true],
    ["v".repeat(65), false],
    ["default", true],
    ["base", true],
    [".v", false],
  ] as const)("[C-006] [C-009] the variant reference %s: %s", async ([variant, valid]) => {
    const text = doc(HEAD.replace("[]", `[{model: a/b, variant: ${variant}}]`));
    const outcome = valid ? loadAgent(text).then(() => "ok") : agentFailure(text);
    expect(await outcome).toEqual(
      valid ? "ok" : expect.objectContaining({ problem: "invalid variant id" }),
    );
  });

  test("[C-079] a primary agent needs a model, others do not", async () => {
    expect(await agentFailure(doc(HEAD.replace("subagent", "primary")))).toMatchObject({
      key: "models",
    });
    await expect(loadAgent(doc(HEAD.replace("subagent", "all")))).resolves.toBeDefined();
  });

  test("[C-089] a variant that no model has is not looked up at load", async () => {
    const models = "[{model: nobody/knows, variant: neither}]";
    await expect(loadAgent(doc(HEAD.replace("[]", models)))).resolves.toBeDefined();
  });

  test.for([
    ["internal", "{model: '${parent_model}'}", true],
    ["internal", "{model: '${parent_model}', variant: high}", false],
    ["subagent", "{model: '${parent_model}'}", false],
  ] as const)("[C-080] in mode %s the model %s is accepted: %s", async ([mode, model, valid]) => {
    const text = doc(HEAD.replace("subagent", mode).replace("[]", `[${model}]`));
    const outcome = valid ? loadAgent(text).then(({ models }) => models) : agentFailure(text);
    expect(await outcome).toEqual(
      valid
        ? [{ model: "${parent_model}", variant: null }]
        : expect.objectContaining({ code: "invalid_value" }),
    );
  });

  test.for([
    ["approval", "", 30_000, 2048],
    ["compaction", "", 180_000, 4096],
    ["title", "", 10_000, 128],
    ["another", "", 30_000, 2048],
    ["title", "limits: { timeout_ms: 5, max_output_tokens: 6 }\n", 5, 6],
    ["title", "limits: { timeout_ms: 0, max_output_tokens: 0 }\n", 10_000, 128],
  ] as const)("[C-081] the internal agent %s with %j", async ([id, limits, timeoutMs, tokens]) => {
    const text = doc(HEAD.replace("subagent", "internal") + limits);
    expect(await loadAgent(text, id)).toMatchObject({ timeoutMs, maxOutputTokens: tokens });
  });

  test("[C-081] a timeout is for internal agents only", async () => {
    expect(await agentFailure(doc(`${HEAD}limits: { timeout_ms: 5 }\n`))).toMatchObject({
      key: "limits.timeout_ms",
      line: 6,
    });
    expect(await loadAgent(doc(`${HEAD}limits: { max_output_tokens: 7 }\n`))).toMatchObject({
      maxOutputTokens: 7,
      timeoutMs: 0,
    });
  });

  test.for([
    ["permission", "did you mean permissions?"],
    ["tools", "use permissions"],
    ["temperature", "remove it"],
  ] as const)("[C-082] the unknown key %s gets the advice %j", async ([key, advice]) => {
    expect(await agentFailure(doc(`${HEAD}${key}: x\n`))).toMatchObject({
      code: "unknown_key",
      key,
      line: 6,
      advice,
    });
  });

  test.for(["approval", "compaction", "title"])("[C-087] %s must be internal", async (id) => {
    expect(await agentFailure(doc(), id)).toMatchObject({ code: "agent_reserved", key: "mode" });
    await expect(loadAgent(doc(HEAD.replace("subagent", "internal")), id)).resolves.toBeDefined();
  });

  test("[C-249] [C-087] default cannot be authored, explore can", async () => {
    expect(await agentFailure(doc(), "default")).toMatchObject({ code: "agent_reserved" });
    expect(await loadAgent(doc(), "explore")).toMatchObject({ source: "user", permissions: [] });
  });
});

describe("permissions", () => {
  test("[C-076] rules keep their authored order, integer-like patterns too", async () => {
    const { permissions } = await loadAgent(
      rules(
        "  write: deny\n  bash:\n    zeta: allow\n    10: ask\n    2: deny\n    '*': ask\n  read: allow",
      ),
    );
    expect(permissions).toEqual([
      { action: "write", resource: "*", effect: "deny" },
      { action: "bash", resource: "zeta", effect: "allow" },
      { action: "bash", resource: "10", effect: "ask" },
      { action: "bash", resource: "2", effect: "deny" },
      { action: "bash", resource: "*", effect: "ask" },
      { action: "read", resource: "*", effect: "allow" },
    ]);
  });

  test("[C-083] all nine actions are accepted", async () => {
    const actions = ["read", "write", "bash", "message", "mcp", "plugin", "skill", "webfetch"];
    const lines = [...actions.map((action) => `  ${action}: ask`), "  delegate: deny"];
    expect((await loadAgent(rules(lines.join("\n")))).permissions).toHaveLength(9);
  });

  test.for([
    ["an unknown action", "  grep: allow", "permissions.grep"],
    ["an action twice", "  read: allow\n  read: deny", "permissions.read"],
    ["a pattern twice", "  read: { a: allow, a: deny }", "permissions.read.a"],
    ["a list of rules", "  - read", "permissions"],
    ["a list of patterns", "  read: [a]", "permissions.read"],
    ["an unknown effect", "  read: { a: perhaps }", "permissions.read.a"],
    ["an effect in the old spelling", "  read: yes", "permissions.read"],
  ] as const)("[C-083] %s is refused", async ([, lines, key]) => {
    expect(await agentFailure(rules(lines))).toMatchObject({ code: "agent_permission", key });
  });

  test("[C-083] a tool name gets the hint to use its action", async () => {
    expect((await agentFailure(rules("  edit_file: allow"))).advice).toContain("action");
    expect((await agentFailure(rules("  wriet: allow"))).advice).toBe("did you mean write?");
  });

  test("[C-083] over 256 rules are refused, counted over all actions", async () => {
    const many = `  read: {${count(256, (n) => `a${n}: ask`)}}`;
    await expect(loadAgent(rules(many))).resolves.toBeDefined();
    expect(await agentFailure(rules(`${many}\n  write: ask`))).toMatchObject({
      code: "agent_permission",
    });
  });

  test.for([
    ["read", "${workspace_dir}/*", true],
    ["write", "${workspace_dir}/a", true],
    ["bash", "${workspace_dir}/a", false],
    ["read", "${home}/a", false],
    ["read", "${workspace_dir", false],
  ] as const)("[C-014] %s of %s is accepted: %s", async ([action, pattern, valid]) => {
    const text = rules(`  ${action}: { '${pattern}': ask }`);
    const outcome = valid ? loadAgent(text).then(() => "ok") : agentFailure(text);
    expect(await outcome).toEqual(
      valid
        ? "ok"
        : expect.objectContaining({
            code: "agent_permission",
            problem: expect.stringContaining("${workspace_dir}") as string,
          }),
    );
  });

  test.for(["a\\\\b", "a[b", "a]", "a{b", "a}", "a\\u0007", "", "x".repeat(4097)])(
    "[C-013] the pattern %j is refused",
    async (pattern) => {
      expect(await agentFailure(rules(`  read: { "${pattern}": ask }`))).toMatchObject({
        code: "agent_permission",
        problem: "invalid wildcard pattern",
      });
    },
  );

  test.for([
    ["delegate: allow", "agent_delegation_invalid"],
    ["delegate: { 'ex*': ask }", "agent_delegation_invalid"],
    ["delegate: { nobody: ask }", "agent_delegation_unknown"],
    ["delegate: { asleep: ask }", "agent_delegation_ineligible"],
    ["delegate: { boss: ask }", "agent_delegation_ineligible"],
    ["delegate: { inner: allow }", "agent_delegation_ineligible"],
    ["delegate: deny", undefined],
    ["delegate: { 'ex*': deny, nobody: deny, both: ask, explore: allow }", undefined],
  ] as const)("[C-084] [C-086] %s: %s", async ([line, code]) => {
    const scenario = await makeScenario({
      user: {
        "agents/lead.md": rules(`  ${line}`),
        "agents/asleep.md": doc(HEAD.replace("true", "false")),
        "agents/boss.md": doc(HEAD.replace("subagent", "primary").replace("[]", "[{model: a/b}]")),
        "agents/inner.md": doc(HEAD.replace("subagent", "internal")),
        "agents/both.md": doc(HEAD.replace("subagent", "all")),
      },
    });
    if (code === undefined) {
      await expect(scenario.load()).resolves.toBeDefined();
      return;
    }
    const error = await scenario.failure();
    expect(error).toMatchObject({ code, line: 7 });
    expect(error.problem).toContain("lead");
  });
});

function count(length: number, item: (index: number) => string): string {
  return Array.from({ length }, (_, index) => item(index)).join(", ");
}
