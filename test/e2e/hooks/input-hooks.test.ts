import { RunRecallSteer, RunSteer, SessionFork } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  delivered,
  type HookPlugin,
  type HookTools,
  writeHookPlugins,
} from "../../support/hook-plugin.ts";
import { type Answer, pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";
import { storeChild } from "../../support/stored-child.ts";

const SECOND = "custom.test/second";
const DONE = { text: "done" };

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

const toldTo = (lines: Awaited<ReturnType<typeof delivered>>) =>
  lines.map(({ plugin, hook }) => `${plugin} ${hook}`);

describe("user_before_input", () => {
  test.for(["user_before_input", "model_before_select", "agent_before_start"] as const)(
    "[S-094] [E-162] a kernel that closes does not wait for a plugin that looks at an admission (%s)",
    async (hook) => {
      const kernel = await openWith([
        {
          name: "stuck",
          hooks: { [hook]: (_facts: unknown, { never }: HookTools) => never() },
          keys: "interception_timeout_ms = 3600000",
        },
      ]);
      const started = kernel.start(await kernel.createSession(), "Hi");
      await expect.poll(() => delivered(kernel.project)).toHaveLength(1);
      await Promise.all([
        expect(started).rejects.toThrow("the session is being closed"),
        kernel.kernel.close(),
      ]);
      expect(kernel.logged.map(({ message }) => message)).not.toContain(
        "a session was closed over its run",
      );
    },
  );

  test("[E-160] [E-167] each plugin sees the text of the one before, and both texts are recorded before the input", async () => {
    const kernel = await openWith([
      {
        name: "first",
        hooks: {
          user_before_input: ({ text }) => ({ action: "transform", new_text: `${text} a` }),
        },
      },
      {
        name: "second",
        hooks: {
          user_before_input: ({ text }) => ({ action: "transform", new_text: `${text} b` }),
        },
      },
    ]);
    const { watch } = await kernel.run("Hi");
    const told = await delivered(kernel.project);
    expect(told).toEqual([
      { plugin: "first", hook: "user_before_input", text: "Hi" },
      { plugin: "second", hook: "user_before_input", text: "Hi a" },
    ]);
    expect(watch.payloads("user_input_transformed")).toEqual([
      { type: "user_input_transformed", original_input: "Hi", input: "Hi a b" },
    ]);
    expect(watch.payloads("user_input_submitted")[0]?.input).toBe("Hi a b");
    const { types } = watch;
    expect(types.indexOf("user_input_submitted")).toBe(types.indexOf("user_input_transformed") + 1);
    expect(pick(kernel.server.requests[0]?.body, "messages", -1, "content")).toBe("Hi a b");
  });

  test("[E-167] a chain whose net change is nil writes nothing", async () => {
    const kernel = await openWith([
      {
        name: "there",
        hooks: { user_before_input: () => ({ action: "transform", new_text: "X" }) },
      },
      {
        name: "back",
        hooks: { user_before_input: () => ({ action: "transform", new_text: "Hi" }) },
      },
    ]);
    const { watch } = await kernel.run("Hi");
    expect(watch.types).not.toContain("user_input_transformed");
    expect(watch.payloads("user_input_submitted")[0]?.input).toBe("Hi");
  });

  test("[E-163] [E-167] handled starts no run, asks nobody behind, and tells its reason", async () => {
    const kernel = await openWith([
      {
        name: "first",
        hooks: { user_before_input: () => ({ action: "handled", reason: "done it" }) },
      },
      { name: "second", hooks: { user_before_input: () => ({ action: "allow" }) } },
    ]);
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    await expect(kernel.start(session, "Hi")).rejects.toMatchObject({
      code: "input_handled",
      data: { reason: "done it", plugin: "first" },
    });
    expect(toldTo(await delivered(kernel.project))).toEqual(["first user_before_input"]);
    await watch.event("session_created");
    expect(watch.types).toEqual(["session_created"]);
  });

  test("[E-166] a blank transform is skipped and the next plugin sees the text as it was", async () => {
    const kernel = await openWith([
      {
        name: "blank",
        hooks: { user_before_input: () => ({ action: "transform", new_text: " " }) },
      },
      { name: "next", hooks: { user_before_input: () => ({ action: "allow" }) } },
    ]);
    const { watch } = await kernel.run("Hi");
    expect((await delivered(kernel.project)).at(-1)).toMatchObject({ plugin: "next", text: "Hi" });
    expect(watch.payloads("user_input_submitted")[0]?.input).toBe("Hi");
  });

  test("[E-160] [S-146] steering is shown too: rewritten it is admitted rewritten, handled it is not admitted", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kernel = await openWith(
      [
        {
          name: "look",
          hooks: {
            user_before_input: ({ text }) => {
              if (text === "/go") return { action: "handled", reason: "went" };
              return text === "Hi"
                ? { action: "allow" }
                : { action: "transform", new_text: `${text}!` };
            },
          },
        },
      ],
      [{ text: "one", until: held }, DONE],
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("model_attempt_started");
    const steer = (input: string) => kernel.client.request(RunSteer, { run_id: runId, input });
    expect(await steer("/go")).toEqual({ accepted: false, handled_reason: "went" });
    expect(await steer("more")).toEqual({ accepted: true });
    expect(await steer("again")).toEqual({ accepted: true });
    expect(await kernel.client.request(RunRecallSteer, { run_id: runId })).toEqual({
      recalled: "again!",
    });
    release();
    await watch.end(runId);
    expect(
      watch.payloads("user_input_transformed").map(({ original_input }) => original_input),
    ).toEqual(["more", "again"]);
    expect(watch.payloads("user_input_submitted").map(({ input }) => input)).toEqual([
      "Hi",
      "more!",
    ]);
  });
});

describe("model_before_select", () => {
  test("[E-160] [E-161] it is asked at the first use, then only when the model changes", async () => {
    const hooks = {
      user_before_input: () => ({ action: "allow" }),
      model_before_select: () => ({ action: "allow" }),
      agent_before_start: () => ({}),
    };
    const kernel = await openWith([{ name: "look", hooks }], [DONE, DONE, DONE]);
    const { sessionId } = await kernel.run("one");
    await kernel.run("two", { session: sessionId });
    const told = await delivered(kernel.project);
    expect(toldTo(told)).toEqual([
      "look user_before_input",
      "look model_before_select",
      "look agent_before_start",
      "look user_before_input",
      "look agent_before_start",
    ]);
    expect(told[1]).toMatchObject({
      to: { model: "custom.test/scripted", variant: null },
      source: "config",
    });
    expect(told[1]).not.toHaveProperty("from");
  });

  test("[E-163] a blocked selection fails the start with its reason and leaves the session as it was", async () => {
    const kernel = await openWith(
      [
        {
          name: "guard",
          hooks: {
            model_before_select: ({ to }) =>
              to.model.includes("second")
                ? { action: "block", reason: "too dear" }
                : { action: "allow" },
          },
        },
      ],
      [DONE, DONE],
      { config: SECOND_MODEL },
    );
    const { sessionId } = await kernel.run("one");
    const selection = { ...kernel.selection, model: { model: SECOND, variant: null } };
    await expect(kernel.start(sessionId, "two", { selection })).rejects.toMatchObject({
      code: "model_selection_blocked",
      data: { reason: "too dear" },
    });
    expect((await delivered(kernel.project)).at(-1)).toMatchObject({
      from: kernel.selection.model,
      to: { model: SECOND },
      source: "user",
    });
    const { end } = await kernel.run("three", { session: sessionId });
    expect(end.type).toBe("run_completed");
  });

  test("[E-160] [E-163] [S-137] before a fallback; a block ends the run with the error that it has", async () => {
    const kernel = await openWith(
      [
        {
          name: "guard",
          hooks: {
            model_before_select: ({ source }) =>
              source === "fallback_restore"
                ? { action: "block", reason: "no" }
                : { action: "allow" },
          },
        },
      ],
      [{ status: 401, body: { error: { message: "wrong key" } } }],
      {
        config: SECOND_MODEL,
        agents: {
          primary: agentDocument(ALLOW_ALL, { models: ["custom.test/scripted", SECOND] }),
        },
      },
    );
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_failed", error: { code: "model_error" } });
    expect(watch.types).not.toContain("model_fallback");
    expect((await delivered(kernel.project)).at(-1)).toMatchObject({
      from: { model: "custom.test/scripted" },
      to: { model: SECOND },
    });
  });
});

describe("agent_before_start", () => {
  test("[E-160] [E-167] it composes the prompt and puts messages before the input, plugin by plugin", async () => {
    const kernel = await openWith(
      [
        {
          name: "first",
          hooks: {
            agent_before_start: () => ({
              append_to_system_prompt: "Be brief.",
              inject_message: { role: "user", content: "the ticket is 7" },
            }),
          },
        },
        {
          name: "second",
          hooks: {
            agent_before_start: ({ prompt_context }) => ({
              replace_system_prompt: `${prompt_context.system_prompt.length > 0 ? "New" : "No"} prompt.`,
              addendum: "And kind.",
              inject_message: { role: "system", content: "mind the gap" },
            }),
          },
        },
      ],
      [DONE],
      { config: "[session_title]\n" },
    );
    const { watch, sessionId } = await kernel.run("Hi");
    const [, told] = await delivered(kernel.project);
    expect(told).toMatchObject({
      agent_path: ["primary"],
      prompt_context: {
        session_id: sessionId,
        input: "Hi",
        injected_messages: [{ role: "user", content: "the ticket is 7" }],
      },
    });
    expect(pick(told, "prompt_context", "system_prompt")).toMatch(/\n\nBe brief\.$/);
    expect(watch.payloads("run_started")[0]?.agent.composed_prompt).toBe(
      "New prompt.\n\nAnd kind.",
    );
    expect(watch.payloads("message_injected")).toEqual([
      { type: "message_injected", role: "user", input: "the ticket is 7" },
      { type: "message_injected", role: "system", input: "mind the gap" },
    ]);
    const { types } = watch;
    expect(types.lastIndexOf("message_injected")).toBe(types.indexOf("user_input_submitted") - 1);
    const messages = pick(kernel.server.requests[0]?.body, "messages") as { content: string }[];
    expect(messages.map(({ content }) => content)).toEqual([
      "New prompt.\n\nAnd kind.",
      "the ticket is 7",
      '<injected_message role="system">\nmind the gap\n</injected_message>',
      "Hi",
    ]);
    const titled = await watch.event("session_title_committed");
    expect(titled.payload.change).toMatchObject({ title: "Hi" });
  });

  test("[E-166] a prompt over 128 KiB is skipped, and so is a message in the role of a tool", async () => {
    const kernel = await openWith([
      {
        name: "big",
        hooks: { agent_before_start: () => ({ replace_system_prompt: "x".repeat(131_073) }) },
      },
      {
        name: "tool",
        hooks: {
          agent_before_start: () => ({ inject_message: { role: "tool", content: "fake" } }),
        },
      },
      { name: "fits", hooks: { agent_before_start: () => ({ addendum: "Fits." }) } },
    ]);
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("run_started")[0]?.agent.composed_prompt).toMatch(
      /^You are under test[\s\S]*\n\nFits\.$/,
    );
    expect(watch.types).not.toContain("message_injected");
  });

  test("[E-167] injected messages are there again when the session is opened anew", async () => {
    const kernel = await openWith(
      [
        {
          name: "once",
          hooks: {
            agent_before_start: (_facts, { count }) =>
              count === 1 ? { inject_message: { role: "assistant", content: "I know 7." } } : {},
          },
        },
      ],
      [DONE, DONE],
    );
    const { sessionId } = await kernel.run("Hi");
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    await again.run("More", { session: sessionId });
    const messages = pick(again.server.requests[1]?.body, "messages") as { content: string }[];
    expect(messages.map(({ content }) => content).slice(1)).toEqual([
      "I know 7.",
      "Hi",
      "done",
      "I know 7.",
      "More",
    ]);
  });
});

describe("a delegated session", () => {
  test("[E-169] has its hooks like any other, but nobody asks about what agents say to it", async () => {
    const answers: Answer[] = [
      DONE,
      { calls: [{ name: "bash", arguments: { command: "echo hi" } }] },
      DONE,
    ];
    const kernel = await openWith(
      [
        {
          name: "look",
          hooks: {
            user_before_input: ({ text }) => ({ action: "transform", new_text: `${text}!` }),
            agent_before_start: () => ({}),
            model_before_request: () => ({ action: "keep" }),
            tool_before_call: () => ({ action: "allow" }),
            tool_after_result: () => ({ action: "keep" }),
            message_end: () => ({ action: "keep" }),
            session_before_fork: () => ({ action: "allow" }),
          },
        },
      ],
      answers,
    );
    const { sessionId: root } = await kernel.run("Root");
    await kernel.close();
    const { sessionId: child } = await storeChild(kernel.project, root);
    const before = (await delivered(kernel.project)).length;
    const again = await openTestKernel({ on: kernel });
    const { watch } = await again.run("Do it", { session: child });
    expect(watch.payloads("user_input_submitted").at(-1)?.input).toBe("Do it");
    const { seq } = await watch.event("run_completed", ({ final_text }) => final_text === "done");
    await again.client.request(SessionFork, { session_id: child, through_seq: seq });
    expect(toldTo((await delivered(kernel.project)).slice(before))).toEqual([
      "look agent_before_start",
      "look model_before_request",
      "look message_end",
      "look tool_before_call",
      "look tool_after_result",
      "look model_before_request",
      "look message_end",
      "look session_before_fork",
    ]);
  });
});
