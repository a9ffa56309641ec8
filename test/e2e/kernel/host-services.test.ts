import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fixturePlugin, trustedPlugin } from "../../support/fixture-plugin.ts";
import { pngOf } from "../../support/media-files.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";

interface Asked {
  readonly method: string;
  readonly params?: object;
  /** Null: none; a number: of the call that was the n-th. */
  readonly context?: number | string | null;
}
type Answer = Record<string, unknown>;

const UNTRUSTED = fixturePlugin("gallery");
const TRUSTED = trustedPlugin("gallery", ["kernel_config", "delegation", "messaging", "goals"]);
const IMAGE = { image: { mime: ["image/png"] } };
const show = (args: object, tool = "show") => ({ calls: [{ name: tool, arguments: args }] });

/** What the kernel answered to each question, asked in one call after another. */
async function ask(calls: readonly (readonly Asked[])[], options: TestKernelOptions = {}) {
  const kernel = await openTestKernel({
    config: UNTRUSTED,
    media: IMAGE,
    ...options,
    answers: [...calls.map((questions) => show({ ask: questions })), { text: "ok" }],
  });
  const run = await kernel.run("Hi");
  const answers = run.watch
    .payloads("tool_call_terminated")
    .map(({ result }) => JSON.parse(result?.output ?? "null") as Answer[]);
  return { kernel, run, answers };
}

const codesOf = (answers: readonly Answer[] | undefined) =>
  (answers ?? []).map(({ code }) => code ?? "granted");

const SERVICES = {
  "host/artifacts/write": { text: "kept" },
  "host/artifacts/read": { uri: `artifact://${"0".repeat(64)}` },
  "host/session/info": {},
  "host/media/sniff": { data: pngOf(1, 1).toString("base64") },
  "host/media/deliver": { scratch: "none" },
  "host/permission/ask": { resources: [{ action: "plugin", label: "show" }], reason: "why not" },
  "host/config/get": { section: "tool_output" },
} as const;
const UNSERVED = [
  "host/delegation/start",
  "host/delegation/result",
  "host/delegation/cancel",
  "host/delegation/targets",
  "host/messages/send",
  "host/goals/get",
  "host/goals/update",
  "host/skills/list",
  "host/skills/get",
  "host/skills/commit",
];

describe("grants", () => {
  const questions = Object.entries(SERVICES).map(([method, params]) => ({ method, params }));

  test("[E-118] an untrusted plugin gets the free services and is told which capability the others need", async () => {
    const { answers } = await ask([questions]);
    expect(codesOf(answers[0])).toEqual([
      "granted",
      "permission_denied",
      "granted",
      "granted",
      "execution_failed",
      "not_granted",
      "not_granted",
    ]);
    expect(answers[0]?.[5]?.["data"]).toMatchObject({ capability: "permission.ask" });
    expect(answers[0]?.[6]?.["data"]).toMatchObject({ capability: "kernel_config" });
  });

  test("[E-118] a grant is checked before the params, and these before the context", async () => {
    const wrong = Object.keys(SERVICES).map((method) => ({
      method,
      params: { nonsense: true },
      context: "unknown",
    }));
    const { answers } = await ask([
      [...wrong, { method: "host/session/info", context: "unknown" }],
    ]);
    expect(codesOf(answers[0])).toEqual([
      ...Array<string>(5).fill("invalid_params"),
      ...Array<string>(2).fill("not_granted"),
      "context_invalid",
    ]);
  });

  test("a service that is not offered yet is granted to nobody, whatever the user granted", async () => {
    const { answers } = await ask([UNSERVED.map((method) => ({ method }))], { config: TRUSTED });
    expect(new Set(codesOf(answers[0]))).toEqual(new Set(["not_granted"]));
    expect(answers[0]).toHaveLength(UNSERVED.length);
  });
});

describe("contexts", () => {
  const inContext = (context: number | string) =>
    Object.entries(SERVICES)
      .filter(([method]) => method !== "host/config/get")
      .map(([method, params]) => ({ method, params, context }));

  test("[E-116] [E-117] a context that is spent or was never given serves nothing", async () => {
    const { answers } = await ask([[], inContext(0), inContext("context-of-another")], {
      config: TRUSTED,
    });
    expect(new Set([...codesOf(answers[1]), ...codesOf(answers[2])])).toEqual(
      new Set(["context_invalid"]),
    );
    expect(answers.map((all) => all.length)).toEqual([0, 6, 6]);
  });

  test("[E-116] a preparation may look and store, and may not deliver or ask", async () => {
    const questions = inContext("").map(({ method, params }) => ({ method, params }));
    const kernel = await openTestKernel({
      config: TRUSTED,
      media: IMAGE,
      answers: [show({ ask: questions }, "peek"), { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    const output = watch.payloads("tool_call_terminated")[0]?.result?.output;
    expect(codesOf(JSON.parse(output ?? "null") as Answer[])).toEqual([
      "granted",
      "artifact_missing",
      "granted",
      "granted",
      "context_invalid",
      "context_invalid",
    ]);
  });

  test("[E-117] whatever call uses it, a context acts on the session that it was given for", async () => {
    const kernel = await openTestKernel({
      config: TRUSTED,
      answers: [
        show({ ask: [{ method: "host/permission/ask", params: SERVICES["host/permission/ask"] }] }),
      ],
    });
    const first = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(first, { interactive: true });
    const runId = await kernel.start(first, "Hi");
    await watch.event("approval_escalated");
    kernel.server.enqueue(
      show({ ask: [{ method: "host/session/info" }, { method: "host/session/info", context: 0 }] }),
      { text: "ok" },
    );
    const other = await kernel.run("Hi");
    const output = other.watch.payloads("tool_call_terminated")[0]?.result?.output ?? "null";
    expect(JSON.parse(output)).toMatchObject([
      { session_id: other.sessionId },
      { session_id: first, run_id: runId },
    ]);
  });
});

describe("session facts", () => {
  const question = [[{ method: "host/session/info" }]];

  test("an untrusted plugin does not learn the model", async () => {
    const { answers, run, kernel } = await ask(question);
    expect(answers[0]?.[0]).toEqual({
      session_id: run.sessionId,
      root_session_id: run.sessionId,
      depth: 0,
      handle: expect.any(String),
      agent: "primary",
      run_id: run.runId,
      cwd: kernel.project.cwd,
      workspace_root: kernel.project.cwd,
    });
  });

  test("a trusted one learns which model called it and what that takes in", async () => {
    const { answers } = await ask(question, { config: TRUSTED });
    expect(answers[0]?.[0]?.["model"]).toEqual({
      key: "custom.test/scripted",
      input: ["text", "image"],
    });
  });
});

describe("artifacts", () => {
  const words = "artifact words\n";

  test("[E-119] an untrusted plugin reads what its own call wrote, and nothing that another one did", async () => {
    const write = { method: "host/artifacts/write", params: { text: words } };
    const first = await ask([[write]]);
    const uri = first.answers[0]?.[0]?.["uri"];
    const second = await ask(
      [[{ method: "host/artifacts/read", params: { uri } }, write, ...readBack(String(uri))]],
      { on: first.kernel },
    );
    expect(codesOf(second.answers[0])).toEqual([
      "permission_denied",
      ...Array<string>(3).fill("granted"),
      "execution_failed",
      "granted",
    ]);
  });

  test.for([
    { byte_offset: 0 },
    { byte_limit: 1 },
    { byte_offset: 0, byte_limit: 1, limit: 1 },
    { byte_offset: 0, byte_limit: 2 ** 20 + 1 },
    { byte_offset: 0, byte_limit: 0 },
  ])("%j is no range", async (range) => {
    const uri = `artifact://${"0".repeat(64)}`;
    const { answers } = await ask([[{ method: "host/artifacts/read", params: { uri, ...range } }]]);
    expect(codesOf(answers[0])).toEqual(["invalid_params"]);
  });

  const readBack = (uri: string) => [
    { method: "host/artifacts/read", params: { uri, byte_offset: 0, byte_limit: 4 } },
    { method: "host/artifacts/read", params: { uri, byte_offset: 4, byte_limit: 1024 } },
    { method: "host/artifacts/read", params: { uri, byte_offset: 99, byte_limit: 1 } },
    { method: "host/artifacts/read", params: { uri } },
  ];

  /** A command leaves an artifact; then the trusted plugin reads it under these rules. */
  async function readOutput(
    rules: object,
    damage: (file: string) => Promise<unknown> = () => Promise.resolve(),
  ) {
    const kernel = await openTestKernel({
      config: TRUSTED,
      agents: { primary: agentDocument({ ...ALLOW_ALL, ...rules }) },
      answers: [
        { calls: [{ name: "bash", arguments: { command: "printf 'artifact words\\n'" } }] },
        { text: "ok" },
      ],
    });
    const { watch, sessionId } = await kernel.run("Hi");
    const retained = watch.payloads("tool_call_terminated")[0]?.result?.retained_output;
    const digest = retained?.streams[0]?.sha256 ?? "none";
    const folder = join(kernel.project.stateDir, "sessions");
    const names = await readdir(folder, { recursive: true });
    await damage(join(folder, names.find((name) => name.endsWith(digest)) ?? "none"));
    kernel.server.enqueue(show({ ask: readBack(`artifact://${digest}`) }), { text: "ok" });
    const second = await kernel.run("Read it", { session: sessionId });
    const ends = second.events.flatMap(({ payload }) =>
      payload.type === "tool_call_terminated" ? [payload.result?.output ?? "null"] : [],
    );
    return JSON.parse(ends[0] ?? "null") as Answer[];
  }

  test("[E-119] media that another call stored is neither named nor delivered", async () => {
    const data = pngOf(2, 2).toString("base64");
    const write = { method: "host/artifacts/write", params: { data } };
    const first = await ask([[write]]);
    const artifact = String(first.answers[0]?.[0]?.["uri"]);
    const look = ["host/media/sniff", "host/media/deliver"].map((method) => ({
      method,
      params: { artifact },
    }));
    const stream = { method: "host/media/sniff", params: { artifact: `${artifact}/stdout` } };
    const second = await ask([[...look, write, ...look, stream]], { on: first.kernel });
    expect(codesOf(second.answers[0])).toEqual([
      "permission_denied",
      "permission_denied",
      "granted",
      "granted",
      "granted",
      "artifact_uri",
    ]);
  });

  test("[E-119] above untrusted, what the rules allow to read is served, by range and by page", async () => {
    const [first, rest, beyond, page] = await readOutput({});
    expect(first).toEqual({
      data: Buffer.from("arti").toString("base64"),
      next_offset: null,
      next_byte: 4,
      total_lines: 1,
      total_bytes: words.length,
      source: "artifact",
    });
    expect(rest).toMatchObject({
      data: Buffer.from(words.slice(4)).toString("base64"),
      next_byte: null,
    });
    expect(beyond).toMatchObject({ code: "execution_failed" });
    expect(page).toMatchObject({ text: words, next_offset: null });
  });

  test.for([
    ["they ask about", { read: "ask" }],
    ["they deny", { read: { "*": "allow", "artifact://*": "deny" } }],
    ["they say nothing of", { read: { "src/*": "allow" } }],
  ] as const)("[E-119] what %s is not", async ([, rules]) => {
    expect(new Set(codesOf(await readOutput(rules)))).toEqual(new Set(["permission_denied"]));
  });

  test("[E-119] content that is not what its digest says, and content that is not there, are told apart", async () => {
    const corrupt = await readOutput({}, (file) => writeFile(file, "something else"));
    expect(new Set(codesOf(corrupt))).toEqual(new Set(["artifact_corrupt"]));
    const uri = `artifact://${"0".repeat(64)}`;
    const missing = await ask([[{ method: "host/artifacts/read", params: { uri } }]], {
      config: TRUSTED,
    });
    expect(codesOf(missing.answers[0])).toEqual(["artifact_missing"]);
  });

  test("[E-119] a list of streams that a plugin wrote itself opens nothing", async () => {
    const kernel = await openTestKernel({
      config: UNTRUSTED,
      answers: [
        { calls: [{ name: "bash", arguments: { command: "echo secret" } }] },
        { text: "ok" },
      ],
    });
    const { watch, sessionId } = await kernel.run("Hi");
    const retained = watch.payloads("tool_call_terminated")[0]?.result?.retained_output;
    const manifest = JSON.stringify({ streams: retained?.streams });
    const write = { method: "host/artifacts/write", params: { text: manifest } };
    kernel.server.enqueue(show({ ask: [write] }), { text: "ok" });
    const written = await kernel.run("Write", { session: sessionId });
    const end = written.events.find(({ payload }) => payload.type === "tool_call_terminated");
    const output = end?.payload.type === "tool_call_terminated" ? end.payload.result?.output : null;
    const [{ uri }] = JSON.parse(output ?? "null") as [{ uri: string }];
    const read = { method: "host/artifacts/read", params: { uri: `${uri}/stdout` } };
    kernel.server.enqueue(show({ ask: [write, read] }), { text: "ok" });
    const tried = await kernel.run("Read", { session: sessionId });
    const last = tried.events.find(({ payload }) => payload.type === "tool_call_terminated");
    expect(JSON.stringify(last?.payload)).toContain("permission_denied");
  });
});

describe("configuration", () => {
  test("[E-121] a listed section comes with its defaults, without any context and without secrets", async () => {
    const section = (name: string) => ({
      method: "host/config/get",
      params: { section: name },
      context: null,
    });
    const { answers } = await ask(
      [[section("tool_output"), section("providers"), section("mcp"), section("nonsense")]],
      { config: TRUSTED, apiKey: "sk-very-secret" },
    );
    const [toolOutput, providers, unlisted, unknown] = answers[0] ?? [];
    expect(toolOutput).toEqual({
      value: { max_lines: 2000, max_bytes: 51_200, max_retained_bytes: 268_435_456 },
    });
    expect(providers).toMatchObject({
      value: {
        "custom.test": { auth: { values: { api_key: null } }, adaptor: "openai-compatible" },
      },
    });
    expect(JSON.stringify(answers)).not.toContain("sk-very-secret");
    expect(unlisted).toMatchObject({ code: "not_granted" });
    expect(unknown).toMatchObject({ code: "invalid_params" });
  });
});

describe("media", () => {
  test("[E-111] content is named by its bytes, and what the model would get is told before it is attached", async () => {
    const file = { name: "plot", base64: pngOf(2, 2).toString("base64") };
    const questions: Asked[] = [
      { method: "host/media/sniff", params: { scratch: "plot" } },
      { method: "host/media/sniff", params: { data: Buffer.from("words").toString("base64") } },
      { method: "host/media/sniff", params: { data: "no base64" } },
      { method: "host/media/deliver", params: { scratch: "plot" } },
      { method: "host/media/sniff", params: {} },
      { method: "host/media/deliver", params: { scratch: "../plot" } },
    ];
    const outcome = async (options: TestKernelOptions) => {
      const kernel = await openTestKernel({
        config: UNTRUSTED,
        ...options,
        answers: [show({ files: [file], ask: questions }), { text: "ok" }],
      });
      const { watch } = await kernel.run("Hi");
      const output = watch.payloads("tool_call_terminated")[0]?.result?.output;
      return JSON.parse(output ?? "null") as Answer[];
    };
    const [sniffed, words, garbage, delivered, none, outside] = await outcome({ media: IMAGE });
    expect(sniffed).toEqual({ mime: "image/png", kind: "image" });
    expect(words).toEqual({ mime: null });
    expect(codesOf([garbage, none, outside].map((one) => one ?? {}))).toEqual(
      Array(3).fill("invalid_params"),
    );
    expect(delivered).toMatchObject({
      artifact: expect.stringMatching(/^artifact:\/\/[0-9a-f]{64}$/),
      mime: "image/png",
      bytes: pngOf(2, 2).byteLength,
      placement: "user_turn",
    });
    const inResult = await outcome({ media: IMAGE, wire: "anthropic" });
    expect(inResult[3]).toMatchObject({ placement: "tool_result" });
    const refused = await outcome({});
    expect(refused[3]).toMatchObject({ code: "media_model" });
  });
});
