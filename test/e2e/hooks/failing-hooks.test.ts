import { appendFile, chmod } from "node:fs/promises";
import { PluginsStatus, RunSteer } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  delivered,
  type HookPlugin,
  type HookTools,
  writeHookPlugins,
} from "../../support/hook-plugin.ts";
import { type Answer, pick } from "../../support/model-server.ts";
import { openTestKernel, type TestKernelOptions } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const DONE = { text: "done" };
const SOON = "interception_timeout_ms = 100";
const REQUIRED = "required = true";

function openWith(
  plugins: readonly HookPlugin[],
  answers: readonly Answer[] = [DONE],
  options: TestKernelOptions = {},
) {
  return openTestKernel({
    answers,
    ...options,
    prepare: (project) => writeHookPlugins(project, plugins),
  });
}

type Failure = (facts: unknown, tools: HookTools) => unknown;

const FAILURES: readonly (readonly [string, Failure, string, Partial<HookPlugin>?])[] = [
  ["does not answer", (_facts, { never }) => never(), "interception_timeout", { keys: SOON }],
  ["crashes", (_facts, { crash }) => crash(), "interception_crash"],
  [
    "answers with an error",
    (_facts, { fail }) => {
      throw fail("execution_failed", "broken");
    },
    "interception_crash",
  ],
  [
    "answers with a cancellation",
    (_facts, { fail }) => {
      throw fail("cancelled", "no");
    },
    "interception_crash",
  ],
  ["answers what is no answer", () => ({ action: "maybe" }), "interception_crash"],
  ["answers with a member too many", () => ({ action: "allow", grant: "*" }), "interception_crash"],
  ["answers with nothing", (_facts, { raw }) => raw("null"), "interception_crash"],
  [
    "answers nested too deeply",
    (_facts, { raw }) => {
      const deep = `${"[".repeat(300)}${"]".repeat(300)}`;
      return raw(`{"action":"allow","modified_arguments":{"command":${deep}}}`);
    },
    "interception_crash",
  ],
  [
    "cannot be started",
    () => ({}),
    "interception_crash",
    {
      manifest: { runtime: { kind: "node", entry: "missing.mjs" } },
    },
  ],
];

describe("a plugin that fails", () => {
  test.for(FAILURES)(
    "[E-045] [E-162] [T-049] and %s is skipped with a diagnostic, and the rest of the chain runs",
    async ([, fails, kind, more]) => {
      const kernel = await openWith(
        [
          { name: "broken", hooks: { tool_before_call: fails }, ...more },
          { name: "next", hooks: { tool_before_call: () => ({ action: "allow" }) } },
        ],
        [{ calls: [bash("echo ran")] }, DONE],
      );
      const { watch, end } = await kernel.run("Hi");
      expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("ran");
      expect(end.type).toBe("run_completed");
      const told = await delivered(kernel.project);
      expect(told.filter(({ plugin }) => plugin === "next")).toHaveLength(1);
      const { payload } = await watch.event(
        "plugin_diagnostic",
        ({ plugin }) => plugin === "broken",
      );
      expect(payload).toMatchObject({ kind });
      expect(payload.message).toMatch(/^tool_before_call: /);
    },
  );

  test.for(FAILURES)(
    "[E-204] [T-049] and %s where it is required denies the call, and nobody behind is asked",
    async ([, fails, , more]) => {
      const keys = [more?.keys ?? "", REQUIRED].join("\n");
      const kernel = await openWith(
        [
          { name: "broken", hooks: { tool_before_call: fails }, ...more, keys },
          { name: "next", hooks: { tool_before_call: () => ({ action: "allow" }) } },
        ],
        [{ calls: [bash("touch made")] }, DONE],
      );
      const { watch, end } = await kernel.run("Hi");
      const [ended] = watch.payloads("tool_call_terminated");
      expect(ended).toMatchObject({ outcome: "failed", error: { code: "operation_blocked" } });
      expect(ended?.error?.message).toMatch(
        /^the required plugin broken failed at tool_before_call: /,
      );
      expect(end.type).toBe("run_completed");
      expect((await delivered(kernel.project)).filter(({ plugin }) => plugin === "next")).toEqual(
        [],
      );
    },
  );

  test.for(["reason", "message_to_model"])(
    "[E-163] but a block whose %s is longer than what is shown is a block, and is cut",
    async (member) => {
      const kernel = await openWith(
        [
          {
            name: "guard",
            hooks: {
              tool_before_call: ({ arguments: { command } }) => ({
                action: "block",
                [process.env["MEMBER"] ?? ""]: `not run: ${String(command)}`,
              }),
            },
            keys: `env = { MEMBER = "${member}" }`,
          },
        ],
        [{ calls: [bash(`touch made # ${"x".repeat(10_000)}`)] }, DONE],
      );
      const { watch } = await kernel.run("Hi");
      const [ended] = watch.payloads("tool_call_terminated");
      expect(ended).toMatchObject({ result: null, error: { code: "operation_blocked" } });
      expect(ended?.error?.message).toMatch(/^not run: touch made # x+/);
    },
  );

  test("[E-167] but text that is replaced stays so whatever the note beside it says", async () => {
    const kernel = await openWith(
      [
        {
          name: "filter",
          hooks: {
            tool_after_result: ({ result_content: text }) => ({
              action: "replace",
              replacement_content: "filtered",
              note: `${"long ".repeat(300)}\n${text.length}`,
            }),
          },
        },
      ],
      [{ calls: [bash("echo secret")] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    const [ended] = watch.payloads("tool_call_terminated");
    expect(ended?.result?.output).toMatch(/^filtered\n\[filter: long [^\n]*\]$/);
  });

  test("[E-162] an answer that comes after the time is up is not taken", async () => {
    const kernel = await openWith([
      {
        name: "late",
        hooks: {
          user_before_input: async (_facts, { cancelled }) => {
            await cancelled;
            return { action: "transform", new_text: "too late" };
          },
        },
        keys: SOON,
      },
    ]);
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("user_input_submitted")[0]?.input).toBe("Hi");
    const { payload } = await watch.event("plugin_diagnostic");
    expect(payload).toMatchObject({ plugin: "late", kind: "interception_timeout" });
  });

  test.for(["interception_timeout_ms", "startup_timeout_ms"])(
    "[E-162] [C-055] with a %s beyond what a timer holds is waited for all the same",
    async (key) => {
      const guard: HookPlugin = {
        name: "guard",
        hooks: { tool_before_call: () => ({ action: "block", reason: "no" }) },
        keys: `${key} = ${Number.MAX_SAFE_INTEGER}`,
      };
      const kernel = await openWith([guard], [{ calls: [bash("touch made")] }, DONE]);
      const { watch } = await kernel.run("Hi");
      expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("operation_blocked");
    },
  );

  test("[E-162] a hook that the manifest does not declare is never delivered", async () => {
    const kernel = await openWith([
      {
        name: "silent",
        hooks: {
          user_before_input: () => ({ action: "handled" }),
          message_end: () => ({ action: "keep" }),
        },
        manifest: { capabilities: { intercept: ["message_end"] } },
      },
    ]);
    await kernel.run("Hi");
    expect((await delivered(kernel.project)).map(({ hook }) => hook)).toEqual(["message_end"]);
  });

  test("[E-051] the first hook of the first run waits for a plugin that is slow to start", async () => {
    const kernel = await openTestKernel({
      answers: [DONE],
      prepare: async (project) => {
        await writeHookPlugins(project, [
          {
            name: "slow",
            hooks: { user_before_input: () => ({ action: "transform", new_text: "seen" }) },
          },
        ]);
        const directory = "hook-plugins/slow";
        await project.writeState(
          `${directory}/late.mjs`,
          `setTimeout(() => import("./main.mjs"), 500);\n`,
        );
        await project.writeState(
          `${directory}/cookie-plugin.json`,
          JSON.stringify({
            manifest: 1,
            name: "slow",
            version: "1.0.0",
            protocol: ["0.1.0"],
            runtime: { kind: "node", entry: "late.mjs" },
            capabilities: { intercept: ["user_before_input"] },
          }),
        );
      },
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("user_input_submitted")[0]?.input).toBe("seen");
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const status = plugins.find(({ plugin }) => plugin === "slow");
    expect(status).toMatchObject({ activation: "session", restarts: 0, state: "connected" });
  });
});

describe("a required plugin that fails", () => {
  const broken = (hook: keyof HookPlugin["hooks"]): HookPlugin => ({
    name: "guard",
    hooks: { [hook]: () => ({ action: "no such action" }) },
    keys: REQUIRED,
  });

  test.for(["user_before_input", "model_before_select", "agent_before_start"] as const)(
    "[E-204] at %s keeps the run from starting, with a reason that names it, and leaves nothing",
    async (hook) => {
      const kernel = await openWith([broken(hook)]);
      const session = await kernel.createSession();
      const watch = kernel.watch(session);
      await expect(kernel.start(session, "Hi")).rejects.toMatchObject({
        code: "operation_blocked",
        message: expect.stringMatching(
          new RegExp(`^the required plugin guard failed at ${hook}: `),
        ),
      });
      await watch.event("session_created");
      expect(watch.types.filter((type) => type !== "plugin_diagnostic")).toEqual([
        "session_created",
      ]);
      expect(kernel.server.requests).toEqual([]);
    },
  );

  test.for([
    "model_before_request",
    "provider_before_headers",
    "provider_before_request",
    "message_end",
  ] as const)("[E-204] at %s fails the attempt and the run with it", async (hook) => {
    const kernel = await openWith([broken(hook)]);
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({
      type: "run_failed",
      error: {
        code: "operation_blocked",
        message: expect.stringMatching(
          new RegExp(`^the required plugin guard failed at ${hook}: `),
        ),
      },
    });
    expect(watch.payloads("attempt_abandoned")).toHaveLength(1);
    expect(watch.types).not.toContain("model_turn_committed");
    expect(kernel.server.requests).toHaveLength(hook === "message_end" ? 1 : 0);
  });

  test("[E-204] at provider_after_response, where it only observes, is skipped", async () => {
    const kernel = await openWith([
      {
        name: "guard",
        hooks: { provider_after_response: (_facts, { crash }) => crash() },
        keys: REQUIRED,
      },
    ]);
    const { end } = await kernel.run("Hi");
    expect(end.type).toBe("run_completed");
  });

  test("[E-204] at tool_after_result withholds what the call said from the model", async () => {
    const kernel = await openWith(
      [broken("tool_after_result")],
      [{ calls: [bash("echo secret")] }, DONE],
    );
    const { watch, end } = await kernel.run("Hi");
    const [ended] = watch.payloads("tool_call_terminated");
    expect(ended).toMatchObject({
      outcome: "failed",
      result: { output: "", metadata: {}, attachments: [] },
      error: { code: "operation_blocked" },
    });
    expect(JSON.stringify(pick(kernel.server.requests[1]?.body, "messages", -1))).not.toContain(
      "secret\\n",
    );
    expect(end.type).toBe("run_completed");
  });

  test("[E-204] with a change that cannot be taken does not let the unchanged go on", async () => {
    const kernel = await openWith(
      [
        {
          name: "guard",
          hooks: {
            tool_after_result: () => ({ action: "replace", replacement_content: "x".repeat(1001) }),
          },
          keys: REQUIRED,
        },
      ],
      [{ calls: [bash("echo secret")] }, DONE],
      { config: "[tool_output]\nmax_bytes = 1000\n" },
    );
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")[0]).toMatchObject({
      result: { output: "" },
      error: { code: "operation_blocked" },
    });
  });

  test("[E-204] while the run runs blocks steering, and the run goes on", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kernel = await openWith(
      [
        {
          name: "guard",
          hooks: {
            user_before_input: (_facts, { count, crash }) =>
              count === 1 ? { action: "allow" } : crash(),
          },
          keys: REQUIRED,
        },
      ],
      [{ text: "one", until: held }],
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("model_attempt_started");
    await expect(
      kernel.client.request(RunSteer, { run_id: runId, input: "more" }),
    ).rejects.toMatchObject({ code: "operation_blocked" });
    release();
    expect((await watch.end(runId)).type).toBe("run_completed");
    expect(watch.types).not.toContain("user_input_admitted");
  });

  test.for([
    ["a program that is absent", "/nonexistent/guard"],
    ["a program whose interpreter is absent", "guard.sh"],
  ])(
    "[B133] [E-204] with %s, nothing starts without it, and the status says why",
    async ([, command]) => {
      const kernel = await openTestKernel({
        answers: [DONE],
        prepare: async (project) => {
          const file = await project.writeState("guard.sh", "#!/nonexistent/interpreter\n");
          await chmod(file, 0o755);
          const path = command === "guard.sh" ? file : command;
          await appendFile(
            `${project.stateDir}/config.toml`,
            `\n[plugins.guard]\ncommand = ${JSON.stringify(path)}\nrequired = true\n`,
          );
        },
      });
      const session = await kernel.createSession();
      await expect(kernel.start(session, "Hi")).rejects.toMatchObject({
        code: "operation_blocked",
        message: expect.stringMatching(/^the required plugin guard failed at user_before_input: /),
      });
      const { plugins } = await kernel.client.request(PluginsStatus, {});
      const status = plugins.find(({ plugin }) => plugin === "guard");
      expect(status?.state).toBe("failed");
      expect(status?.reason).toMatch(/ENOENT|could not be started|no such file/i);
      expect(kernel.server.requests).toEqual([]);
    },
  );

  test.for(["enabled = false", "enabled = true"])(
    "[E-204] a trusted workspace cannot put an entry with %s in the place of the guard",
    async (key) => {
      const opened = openTestKernel({
        answers: [DONE],
        trust: "this_process",
        prepare: async (project) => {
          const hooks = { tool_before_call: () => ({ action: "allow" }) };
          await writeHookPlugins(project, [{ name: "guard", hooks, keys: REQUIRED }]);
          await project.write(
            ".cookie-agent/config.toml",
            `[plugins.guard]\ncommand = "/bin/true"\n${key}\n`,
          );
        },
      });
      await expect(opened).rejects.toMatchObject({
        code: "plugin_invalid",
        message: expect.stringMatching(/plugins\.guard.*the user's configuration requires its own/),
      });
    },
  );
});
