import { existsSync } from "node:fs";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PluginsStatus, RunCancel } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { delivered, type HookPlugin, writeHookPlugins } from "../../support/hook-plugin.ts";
import { type Answer, pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const write = (filePath: string, content: string) => ({
  name: "write",
  arguments: { filePath, content },
});
const DONE = { text: "done" };

function openWith(
  plugins: readonly HookPlugin[],
  answers: readonly Answer[],
  { more, ...options }: TestKernelOptions & { more?: TestKernelOptions["prepare"] } = {},
) {
  return openTestKernel({
    answers,
    ...options,
    prepare: async (project) => {
      await writeHookPlugins(project, plugins);
      await more?.(project);
    },
  });
}

function toolTexts(kernel: TestKernel, request = 1): string[] {
  const messages = pick(kernel.server.requests[request]?.body, "messages") as { role: string }[];
  return messages
    .filter(({ role }) => role === "tool")
    .map((message) => String(pick(message, "content")));
}

async function diagnosticsOf(kernel: TestKernel, name: string): Promise<readonly string[]> {
  const { plugins } = await kernel.client.request(PluginsStatus, {});
  return plugins.find(({ plugin }) => plugin === name)?.diagnostics ?? [];
}

describe("tool_before_call", () => {
  test("[E-160] [E-165] [T-048] it is told tool, arguments, permission and resource of a permitted call, never of a denied one", async () => {
    const kernel = await openWith(
      [{ name: "look", hooks: { tool_before_call: () => ({ action: "allow" }) } }],
      [
        {
          calls: [bash("rm -rf ."), bash("echo ran"), { name: "bash", arguments: { command: 5 } }],
        },
        DONE,
      ],
      {
        agents: {
          primary: agentDocument({ ...ALLOW_ALL, bash: { "*": "allow", "rm *": "deny" } }),
        },
      },
    );
    await kernel.run("Hi");
    expect(await delivered(kernel.project)).toEqual([
      {
        plugin: "look",
        hook: "tool_before_call",
        tool: "bash",
        arguments: { command: "echo ran" },
        permission_name: "bash",
        resource: "echo ran",
      },
    ]);
  });

  test("[E-163] [T-048] a block ends the chain and is a tool error that the model reads, and the turn goes on", async () => {
    const kernel = await openWith(
      [
        {
          name: "guard",
          hooks: {
            tool_before_call: ({ arguments: { command } }) => {
              if (command === "echo one") {
                return { action: "block", reason: "for people", message_to_model: "use two" };
              }
              return command === "echo three"
                ? { action: "block", reason: "only a reason" }
                : { action: "allow" };
            },
          },
        },
        { name: "behind", hooks: { tool_before_call: () => ({ action: "allow" }) } },
      ],
      [{ calls: [bash("echo one"), bash("echo two"), bash("echo three")] }, DONE],
    );
    const { watch, end } = await kernel.run("Hi");
    const errors = watch
      .payloads("tool_call_terminated")
      .sort((a, b) => a.owner.content_index - b.owner.content_index)
      .map(({ error }) => error);
    expect(errors).toEqual([
      { code: "operation_blocked", message: "use two" },
      null,
      { code: "operation_blocked", message: "only a reason" },
    ]);
    const [first, second] = toolTexts(kernel);
    expect(first).toContain("use two");
    expect(second).toContain("two");
    expect(end.type).toBe("run_completed");
    const behind = (await delivered(kernel.project)).filter(({ plugin }) => plugin === "behind");
    expect(behind).toHaveLength(1);
    expect(await diagnosticsOf(kernel, "guard")).toContainEqual(
      expect.stringMatching(/^hook_blocked: tool_before_call: /),
    );
  });

  test("[E-164] changed arguments that lead to what was approved are prepared anew and run, through the chain", async () => {
    const kernel = await openWith(
      [
        {
          name: "first",
          hooks: {
            tool_before_call: ({ arguments: args }) => ({
              action: "allow",
              modified_arguments: { ...args, content: `${args["content"]} clean` },
            }),
          },
        },
        { name: "second", hooks: { tool_before_call: () => ({ action: "allow" }) } },
      ],
      [{ calls: [write("new.txt", "dirty")] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    const [, second] = await delivered(kernel.project);
    expect(second).toMatchObject({ arguments: { content: "dirty clean" }, resource: "new.txt" });
    expect(watch.payloads("tool_call_terminated")[0]?.outcome).toBe("completed");
    expect(await readFile(`${kernel.project.cwd}/new.txt`, "utf8")).toBe("dirty clean");
  });

  test.for([
    ["another resource", { command: "echo other" }, "not approved"],
    ["arguments that the schema refuses", { command: 5 }, "cannot run"],
    ["no arguments", {}, "cannot run"],
  ] as const)(
    "[E-164] [E-165] changed to %s the call fails, and nothing of it runs",
    async ([, args, said]) => {
      const kernel = await openWith(
        [
          {
            name: "swap",
            hooks: {
              tool_before_call: () => ({
                action: "allow",
                modified_arguments: JSON.parse(process.env["ARGS"] ?? ""),
              }),
            },
            keys: `env = { ARGS = ${JSON.stringify(JSON.stringify(args))} }`,
          },
        ],
        [{ calls: [bash("touch made")] }, DONE],
      );
      const { watch, end } = await kernel.run("Hi");
      const [ended] = watch.payloads("tool_call_terminated");
      expect(ended).toMatchObject({
        outcome: "failed",
        result: null,
        error: { code: "operation_changed" },
      });
      expect(ended?.error?.message).toContain("the plugin swap");
      expect(ended?.error?.message).toContain(said);
      expect(await diagnosticsOf(kernel, "swap")).toContainEqual(
        expect.stringMatching(/^invalid_modification: tool_before_call: /),
      );
      expect(existsSync(`${kernel.project.cwd}/made`)).toBe(false);
      expect(end.type).toBe("run_completed");
    },
  );

  test("[E-164] [S-254] a dynamically prepared call cannot be led to another file", async () => {
    const kernel = await openWith(
      [
        {
          name: "swap",
          hooks: {
            tool_before_call: ({ arguments: args }) => ({
              action: "allow",
              modified_arguments: { ...args, filePath: "elsewhere.txt" },
            }),
          },
        },
      ],
      [{ calls: [write("new.txt", "x")] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("operation_changed");
    expect(await readdir(kernel.project.cwd)).toEqual([]);
  });

  test.for(["permission_name", "resource"])(
    "[E-165] an answer that names a %s is malformed and changes nothing",
    async (member) => {
      const kernel = await openWith(
        [
          {
            name: "grab",
            hooks: {
              tool_before_call: () => ({ action: "allow", [process.env["MEMBER"] ?? ""]: "*" }),
            },
            keys: `env = { MEMBER = "${member}" }`,
          },
          { name: "next", hooks: { tool_before_call: () => ({ action: "allow" }) } },
        ],
        [{ calls: [bash("echo ran")] }, DONE],
      );
      const { watch } = await kernel.run("Hi");
      expect(watch.payloads("tool_call_terminated")[0]?.outcome).toBe("completed");
      expect((await delivered(kernel.project)).at(-1)).toMatchObject({
        plugin: "next",
        permission_name: "bash",
        resource: "echo ran",
      });
      expect(await diagnosticsOf(kernel, "grab")).toContainEqual(
        expect.stringMatching(/^interception_crash: tool_before_call: /),
      );
    },
  );

  test("[E-087] [S-254] an exclusive call's hooks run after the parallel calls have ended, each right before its call", async () => {
    const look: HookPlugin = {
      name: "look",
      hooks: {
        tool_before_call: () => ({ action: "allow" }),
        tool_after_result: () => ({ action: "keep" }),
      },
    };
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [
        {
          calls: [
            { name: "echo", arguments: { text: "a" } },
            { name: "echo", arguments: { text: "b" } },
            bash("echo parallel"),
          ],
        },
        DONE,
      ],
      prepare: (project) => writeHookPlugins(project, [look]),
    });
    await kernel.run("Hi");
    const order = (await delivered(kernel.project)).map(({ hook, arguments: args }) => [
      hook === "tool_before_call" ? "before" : "after",
      pick(args, "text") ?? pick(args, "command"),
    ]);
    expect(order).toEqual([
      ["before", "echo parallel"],
      ["after", "echo parallel"],
      ["before", "a"],
      ["after", "a"],
      ["before", "b"],
      ["after", "b"],
    ]);
  });

  test("[E-087] [T-027] calls with one key run in model order, whichever hook answers first", async () => {
    const kernel = await openWith(
      [
        {
          name: "slow-first",
          hooks: {
            tool_before_call: async ({ arguments: args }) => {
              const shared = globalThis as { passed?: () => void; second?: Promise<void> };
              shared.second ??= new Promise((resolve) => {
                shared.passed = resolve;
              });
              if (args["content"] === "first") await shared.second;
              else shared.passed?.();
              return { action: "allow" };
            },
          },
        },
      ],
      [{ calls: [write("new.txt", "first"), write("new.txt", "second")] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    expect(
      watch
        .payloads("tool_call_terminated")
        .map(({ owner, error }) => [owner.content_index, error?.code ?? "ok"]),
    ).toEqual([
      [0, "ok"],
      [1, "operation_changed"],
    ]);
  });

  test("[E-165] arguments that trade places change the resource, however alike the labels", async () => {
    const library = pathToFileURL(join(import.meta.dirname, "../../fixtures/plugins/wire.mjs"));
    const kernel = await openWith(
      [
        {
          name: "swap",
          hooks: {
            tool_before_call: ({ arguments: { from, to } }) => ({
              action: "allow",
              modified_arguments: { from: to, to: from },
            }),
          },
        },
      ],
      [{ calls: [{ name: "move", arguments: { from: "a", to: "b" } }] }, DONE],
      {
        more: async (project) => {
          const text = { type: "string" };
          await project.writeState(
            "mover/cookie-plugin.json",
            JSON.stringify({
              manifest: 1,
              name: "mover",
              version: "1.0.0",
              protocol: ["0.1.0"],
              runtime: { kind: "node", entry: "main.mjs" },
              tools: [
                {
                  name: "move",
                  description: "Moves one thing.",
                  parameters: {
                    type: "object",
                    properties: { from: text, to: text },
                    required: ["from", "to"],
                    additionalProperties: false,
                  },
                  permission_name: "move",
                  prepare: {
                    mode: "static",
                    resources: [
                      { action: "plugin", arg: "from" },
                      { action: "plugin", arg: "to" },
                    ],
                  },
                },
              ],
            }),
          );
          await project.writeState(
            "mover/main.mjs",
            `import { serve } from ${JSON.stringify(library.href)};
serve({ name: "mover", handlers: { "plugin/tools/call": () => ({ content: "moved" }) } });
`,
          );
          await appendFile(
            `${project.stateDir}/config.toml`,
            `\n[plugins.mover]\npath = "${project.stateDir}/mover"\n`,
          );
        },
      },
    );
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")).toMatchObject([
      { outcome: "failed", result: null, error: { code: "operation_changed" } },
    ]);
  });

  test("[E-105] [E-160] a cancelled run does not wait for a hook, which is told, and its call never runs", async () => {
    const kernel = await openWith(
      [
        {
          name: "stuck",
          hooks: { tool_before_call: (_facts, { never }) => never() },
          keys: "interception_timeout_ms = 60000",
        },
      ],
      [{ calls: [bash("touch made")] }],
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("tool_call_started");
    await expect.poll(() => delivered(kernel.project)).toHaveLength(1);
    await kernel.client.request(RunCancel, { run_id: runId });
    expect((await watch.end(runId)).type).toBe("run_cancelled");
    expect(watch.payloads("tool_call_terminated")).toMatchObject([
      { outcome: "cancelled", error: { code: "cancelled" } },
    ]);
    await expect
      .poll(() => delivered(kernel.project))
      .toContainEqual({ plugin: "stuck", hook: "tool_before_call", cancelled: true });
  });
});

test("[E-116] [E-117] [E-148] a hook asks about its session and publishes in it while it is open", async () => {
  const kernel = await openWith(
    [
      {
        name: "audit",
        hooks: {
          tool_before_call: async ({ tool }, { params, plugin }) => {
            const { context_id, session_id } = params;
            const info = await plugin.ask("host/session/info", { context_id });
            await plugin.ask("plugin/emit", {
              session_id,
              context_id,
              name: "seen",
              payload: { tool, agent: info["agent"] },
            });
            return { action: "allow" };
          },
        },
        manifest: {
          capabilities: {
            intercept: ["tool_before_call"],
            publish_session_events: true,
            host: ["session.info"],
          },
        },
      },
    ],
    [{ calls: [bash("echo ran")] }, DONE],
  );
  const { watch } = await kernel.run("Hi");
  expect(watch.payloads("plugin_event_added")).toEqual([
    {
      type: "plugin_event_added",
      plugin: "audit",
      name: "seen",
      payload: { tool: "bash", agent: "primary" },
    },
  ]);
});

describe("tool_after_result", () => {
  test("[E-105] [E-204] a cancelled run ends although the guard of what its call printed does not answer", async () => {
    const kernel = await openWith(
      [
        {
          name: "stuck",
          hooks: { tool_after_result: (_facts, { never }) => never() },
          keys: "interception_timeout_ms = 3600000\nrequired = true",
        },
      ],
      [{ calls: [bash("echo secret")] }],
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await expect.poll(() => delivered(kernel.project)).toHaveLength(1);
    await kernel.client.request(RunCancel, { run_id: runId });
    expect((await watch.end(runId)).type).toBe("run_cancelled");
    expect(watch.payloads("tool_call_terminated")).toMatchObject([
      { outcome: "failed", result: { output: "", metadata: {} } },
    ]);
  });

  test("[E-160] [T-048] it is told what the model would read, before it is recorded; replacements and notes chain", async () => {
    const kernel = await openWith(
      [
        {
          name: "redact",
          hooks: {
            tool_after_result: ({ result_content }) => ({
              action: "replace",
              replacement_content: result_content.replaceAll("secret", "[gone]"),
              note: "1 secret removed",
            }),
          },
        },
        { name: "second", hooks: { tool_after_result: () => ({ action: "keep" }) } },
      ],
      [{ calls: [bash("echo a secret")] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    const [first, second] = await delivered(kernel.project);
    expect(first).toMatchObject({
      tool: "bash",
      arguments: { command: "echo a secret" },
      is_error: false,
    });
    expect(first?.["result_content"]).toContain("a secret\n");
    expect(second?.["result_content"]).toContain("a [gone]\n");
    const [ended] = watch.payloads("tool_call_terminated");
    expect(ended?.result?.output).toBe(`${second?.["result_content"]}`);
    expect(ended?.result?.output).toMatch(/\n\[redact: 1 secret removed\]$/);
    expect(toolTexts(kernel)[0]).toContain("a [gone]");
    expect(toolTexts(kernel)[0]).not.toContain("secret\n");
    expect(ended?.result?.retained_output).not.toBeNull();
  });

  test("[E-166] [T-049] a replacement over the byte limit of tool output is skipped with a diagnostic", async () => {
    const kernel = await openWith(
      [
        {
          name: "long",
          hooks: {
            tool_after_result: () => ({ action: "replace", replacement_content: "x".repeat(1001) }),
          },
        },
      ],
      [{ calls: [bash("echo short")] }, DONE],
      { config: "[tool_output]\nmax_bytes = 1000\n" },
    );
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("short");
    expect(await diagnosticsOf(kernel, "long")).toContainEqual(
      expect.stringMatching(/^invalid_modification: tool_after_result: /),
    );
  });

  test("[E-160] a failed call is shown with its error, and a replacement leaves nothing of either", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("crash"),
      answers: [{ calls: [{ name: "crash_now", arguments: { how: "throw" } }] }, DONE],
      prepare: (project) =>
        writeHookPlugins(project, [
          {
            name: "hide",
            hooks: {
              tool_after_result: () => ({ action: "replace", replacement_content: "hidden" }),
            },
          },
        ]),
    });
    const { watch } = await kernel.run("Hi");
    const [told] = await delivered(kernel.project);
    expect(told).toMatchObject({ tool: "crash_now", is_error: true });
    expect(String(told?.["result_content"])).not.toBe("");
    const [ended] = watch.payloads("tool_call_terminated");
    expect(ended).toMatchObject({ outcome: "failed", result: { output: "hidden" } });
    expect(toolTexts(kernel)[0]).not.toContain(String(told?.["result_content"]));
  });

  test("[E-160] what a cancelled call printed is shown before it is recorded", async () => {
    const kernel = await openWith(
      [
        {
          name: "redact",
          hooks: {
            tool_after_result: () => ({ action: "replace", replacement_content: "[gone]" }),
          },
        },
      ],
      [{ calls: [bash("echo secret; sleep 600")] }],
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.output("secret");
    await kernel.client.request(RunCancel, { run_id: runId });
    await watch.end(runId);
    expect(watch.payloads("tool_call_terminated")).toMatchObject([
      { outcome: "cancelled", result: { output: "[gone]" } },
    ]);
  });
});
