import { join } from "node:path";
import { type AttemptId, CookieError, type HookName, type RunId } from "@cookie-agent/sdk/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import type { PluginEntry } from "../../../../kernel/src/config/plugin-entry.ts";
import { HookChain, type HookPass } from "../../../../kernel/src/plugin/hook-chain.ts";
import type { HookPlugins, HookSite } from "../../../../kernel/src/plugin/hook-site.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { delivered, type HookPlugin, writeHookPlugins } from "../../../support/hook-plugin.ts";
import { createTempProject } from "../../../support/temp-project.ts";
import { entryFor, never, openHost, SESSION } from "./open-host.ts";

const SITE: HookSite = {
  sessionId: SESSION,
  rootSessionId: SESSION,
  runId: createId<RunId>(),
  toolCallId: null,
};

/** One answer per plugin, for any hook: a value, or an error that it rejects with. */
type Answers = Readonly<Record<string, unknown>>;

function chainOf(answers: Answers, required: readonly string[] = []) {
  const notes: string[] = [];
  const asked: { plugin: string; facts: unknown }[] = [];
  const plugins: HookPlugins = {
    interceptors: () =>
      Object.keys(answers).map((plugin) => ({ plugin, required: required.includes(plugin) })),
    intercept: async (plugin, _hook, { facts }) => {
      asked.push({ plugin, facts });
      const answer = answers[plugin];
      if (answer instanceof Error) throw answer;
      return answer as never;
    },
  };
  const chain = new HookChain(plugins, {
    note: (session, plugin, kind, message) =>
      notes.push(`${session === SESSION ? "" : "?"}${plugin} ${kind}: ${message}`),
  });
  return { chain, notes, asked };
}

const TEXT: HookPass<"user_before_input", string> = {
  state: "Hi",
  facts: (text) => ({ text }),
  take: (text, { action, new_text: next, reason }) =>
    action === "handled" ? { kind: "handled", reason } : { kind: "go", state: next ?? text },
};

const to = (text: string) => ({ action: "transform", new_text: text });

describe("a chain", () => {
  test("[E-160] hands on what each made of it, and an undefined answer counts for nothing", async () => {
    const { chain, asked } = chainOf({
      a: to("1"),
      b: undefined,
      c: to("2"),
      d: { action: "allow" },
    });
    const outcome = await chain.run("user_before_input", SITE, TEXT, never());
    expect(outcome).toEqual({ kind: "passed", state: "2" });
    expect(asked.map(({ facts }) => facts)).toEqual(
      ["Hi", "1", "1", "2"].map((text) => ({ text })),
    );
  });

  test.for([
    ["timeout", "interception_timeout"],
    ["resource_limit", "oversized_event"],
    ["busy", "interception_crash"],
    ["plugin_crashed", "interception_crash"],
    ["plugin_unavailable", "interception_crash"],
    ["protocol_violation", "interception_crash"],
  ])("[E-162] a plugin that fails with %s is skipped and told as %s", async ([code = "", kind]) => {
    const { chain, notes } = chainOf({ a: new CookieError(code, "why\nnot"), b: to("1") });
    const outcome = await chain.run("user_before_input", SITE, TEXT, never());
    expect(outcome).toEqual({ kind: "passed", state: "1" });
    expect(notes).toEqual([`a ${kind}: user_before_input: why not`]);
  });

  test("[E-204] a required one that fails ends it with a reason that names it", async () => {
    const { chain, asked } = chainOf({ a: new CookieError("busy", "full"), b: to("1") }, ["a"]);
    expect(await chain.run("user_before_input", SITE, TEXT, never())).toEqual({
      kind: "failure",
      plugin: "a",
      reason: "the required plugin a failed at user_before_input: full",
    });
    expect(asked).toHaveLength(1);
  });

  test.for([
    ["not now", "not now"],
    [undefined, "the plugin a gave no reason"],
  ])("[E-163] a block for the reason %s ends it, and is told", async ([reason, told]) => {
    const { chain, notes, asked } = chainOf({ a: { action: "handled", reason }, b: to("1") });
    const pass: typeof TEXT = {
      ...TEXT,
      take: (_text, answer) => ({ kind: "block", reason: answer.reason }),
    };
    expect(await chain.run("user_before_input", SITE, pass, never())).toEqual({
      kind: "blocked",
      plugin: "a",
      reason: told,
    });
    expect(notes).toEqual([`a hook_blocked: user_before_input: ${told}`]);
    expect(asked).toHaveLength(1);
  });

  test("[E-204] a required one that fails where it only observes is skipped", async () => {
    const { chain, asked } = chainOf({ a: new CookieError("timeout", "late"), b: {} }, ["a"]);
    const facts = { attempt_id: createId<AttemptId>(), status: 200, headers: {} };
    const pass: HookPass<"provider_after_response", null> = {
      state: null,
      facts: () => facts,
      take: (state) => ({ kind: "go", state }),
    };
    const outcome = await chain.run("provider_after_response", SITE, pass, never());
    expect(outcome).toEqual({ kind: "passed", state: null });
    expect(asked.map(({ plugin }) => plugin)).toEqual(["a", "b"]);
  });

  test("[E-167] an abort with a reason of its own is the failure of whoever has not answered, and cancels nothing", async () => {
    const over = new AbortController();
    over.abort(new CookieError("timeout", "not soon enough"));
    const { chain, notes } = chainOf({ a: new CookieError("cancelled", "given up"), b: to("1") });
    const outcome = await chain.run("user_before_input", SITE, TEXT, over.signal);
    expect(outcome).toEqual({ kind: "passed", state: "1" });
    expect(notes).toEqual(["a interception_timeout: user_before_input: not soon enough"]);
  });

  test("a failure that is none of the plugin's is not hidden", async () => {
    const { chain } = chainOf({ a: new TypeError("a bug") });
    await expect(chain.run("user_before_input", SITE, TEXT, never())).rejects.toThrow("a bug");
  });

  test("a cancelled chain rejects, even when its last plugin has answered", async () => {
    const stop = new AbortController();
    const { chain } = chainOf({ a: to("1") });
    const pass: typeof TEXT = {
      ...TEXT,
      take: (text) => {
        stop.abort();
        return { kind: "go", state: text };
      },
    };
    await expect(chain.run("user_before_input", SITE, pass, stop.signal)).rejects.toMatchObject({
      code: "cancelled",
    });
  });
});

describe("over real processes", () => {
  async function openChain(
    plugins: readonly HookPlugin[],
    options: Parameters<typeof openHost>[0] = {},
    entry: Partial<PluginEntry> = {},
  ) {
    const project = await createTempProject();
    onTestFinished(() => project.remove());
    await project.writeState("config.toml", "");
    await writeHookPlugins(project, plugins);
    const entries = plugins.map(({ name, keys }) =>
      entryFor(name, {
        launch: { kind: "path", directory: join(project.stateDir, "hook-plugins", name) },
        required: keys === "required",
        ...entry,
      }),
    );
    const { host } = await openHost({ entries, ...options });
    const notes: string[] = [];
    const chain = new HookChain(host, {
      note: (_session, plugin, kind) => notes.push(`${plugin} ${kind}`),
    });
    return { chain, host, notes, project };
  }

  test.for(["", "required"])("[E-162] [E-204] a full queue skips a plugin%s", async (keys) => {
    const { chain, notes, project } = await openChain(
      [
        {
          name: "busy",
          keys,
          hooks: {
            user_before_input: async (_facts, { cancelled }) => {
              await cancelled;
              return { action: "allow" };
            },
          },
          manifest: { max_in_flight: 1 },
        },
      ],
      { limits: { queuedRequests: 0 } },
    );
    const stop = new AbortController();
    const first = chain.run("user_before_input", SITE, TEXT, stop.signal).catch(() => undefined);
    await expect.poll(() => delivered(project)).toHaveLength(1);
    const second = await chain.run("user_before_input", SITE, TEXT, never());
    expect(second.kind).toBe(keys === "required" ? "failure" : "passed");
    expect(notes).toEqual(["busy interception_crash"]);
    stop.abort();
    await first;
  });

  test("[E-162] a hook waits for its turn no longer than for its answer, and not for the clean-up of one that is given up", async () => {
    const { chain, host, notes, project } = await openChain(
      [
        {
          name: "busy",
          hooks: { user_before_input: (_facts, { never }) => never() },
          manifest: { max_in_flight: 1 },
        },
      ],
      // Neither is what ends the wait.
      { limits: { cancelCleanupMs: 600_000, deafAfterMs: 600_000 } },
      { interceptionTimeoutMs: 100 },
    );
    for (let asked = 0; asked < 2; asked += 1) {
      const outcome = await chain.run("user_before_input", SITE, TEXT, never());
      expect(outcome).toEqual({ kind: "passed", state: "Hi" });
    }
    expect(notes).toEqual(["busy interception_timeout", "busy interception_timeout"]);
    const asked = (await delivered(project)).filter(({ cancelled }) => cancelled !== true);
    expect(asked).toHaveLength(1);
    // A closing host would wait for the clean-up.
    const pid = host.status()[0]?.pid;
    if (typeof pid === "number") process.kill(pid, "SIGKILL");
  });

  test.for(["", "required"])(
    "[E-162] [E-204] a payload over the line limit is not sent to a plugin%s",
    async (keys) => {
      const { chain, notes, project } = await openChain([
        { name: "look", keys, hooks: { user_before_input: () => ({ action: "allow" }) } },
      ]);
      const pass = { ...TEXT, state: "x".repeat(4_194_304) };
      const outcome = await chain.run("user_before_input", SITE, pass, never());
      expect(outcome.kind).toBe(keys === "required" ? "failure" : "passed");
      expect(notes).toEqual(["look oversized_event"]);
      expect(await delivered(project)).toEqual([]);
      expect((await chain.run("user_before_input", SITE, TEXT, never())).kind).toBe("passed");
    },
  );

  test("[E-116] [E-117] a hook's context reaches host services while it is open, and only then", async () => {
    const { chain, project } = await openChain([
      {
        name: "store",
        hooks: {
          user_before_input: async ({ text }, { count, params, plugin }) => {
            const shared = globalThis as { spent?: string };
            const context_id = count === 1 ? params.context_id : shared.spent;
            shared.spent = params.context_id;
            try {
              await plugin.ask("host/artifacts/write", { context_id, text });
              return { action: "transform", new_text: "stored" };
            } catch (error) {
              return { action: "transform", new_text: String((error as { code: unknown }).code) };
            }
          },
        },
        manifest: {
          capabilities: { intercept: ["user_before_input"], host: ["artifacts.write"] },
        },
      },
    ]);
    const first = await chain.run("user_before_input", SITE, TEXT, never());
    const second = await chain.run("user_before_input", SITE, TEXT, never());
    expect([first, second]).toEqual([
      { kind: "passed", state: "stored" },
      { kind: "passed", state: "context_invalid" },
    ]);
    expect(await delivered(project)).toHaveLength(2);
  });

  test("nobody intercepts: no hook has anybody", async () => {
    const { chain, host } = await openChain([]);
    expect(host.interceptors("tool_before_call" satisfies HookName)).toEqual([]);
    expect(chain.has("tool_before_call", "user_before_input")).toBe(false);
  });
});
