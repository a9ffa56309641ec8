import type { EmitResult, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  createListener,
  type EmitAction,
  type JournalEntry,
} from "../../support/listener-plugin.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs, payloadsOf, readLog } from "../../support/session-log.ts";
import type { SessionWatch } from "../../support/session-watch.ts";

const KIB = 1024;
const ended = ({ heard }: JournalEntry) => heard?.event.type === "run_completed";
const publish = (actions: readonly EmitAction[]) => ({
  name: "listener_publish",
  arguments: { actions },
});
const resultsOf = (journal: readonly JournalEntry[]) =>
  journal.flatMap(({ result }) => (result === undefined ? [] : [result]));

/** What calls of `publish` were answered, in order. */
function answers(watch: SessionWatch): EmitResult[] {
  return watch
    .payloads("tool_call_terminated")
    .flatMap(({ result }) => JSON.parse(result?.output ?? "[]") as EmitResult[]);
}

/** Closes the kernel, and reads what its only session holds. */
async function closeAndRead(kernel: TestKernel) {
  await kernel.close();
  const [log] = await findLogs(kernel.project);
  return readLog(log ?? "");
}

/** What was noted of whom, over all batches. */
function diagnosticsOf(events: Awaited<ReturnType<typeof readLog>>) {
  const counts = new Map<string, { plugin: string; kind: string; count: number }>();
  for (const { plugin, kind, count } of payloadsOf(events, "plugin_diagnostic")) {
    const before = counts.get(`${plugin} ${kind}`)?.count ?? 0;
    counts.set(`${plugin} ${kind}`, { plugin, kind, count: before + count });
  }
  return [...counts.values()];
}

const PUBLISHED = { bus: "published", durable: "published" };
const REJECTED = { bus: "rejected", durable: "rejected" };
const TOO_MUCH = { bus: "dropped", durable: "rejected" };

describe("a publication", () => {
  test("[E-141] [E-142] [E-147] [S-240] it reaches others and clients, both ways, and not its author", async () => {
    const author = await createListener("author", {
      on: { run_started: [{ name: "news.first", payload: { n: 1 } }] },
    });
    const other = await createListener("other");
    const kernel = await openTestKernel({
      config: `${author.toml}\n${other.toml}`,
      answers: [{ text: "ok" }],
    });
    const bystander = kernel.watch(await kernel.createSession());
    const { sessionId, watch } = await kernel.run("Hi");
    const journal = await other.until(({ heard }) => heard?.event.type === "plugin_event_added");
    await author.until(ended);
    await author.until(({ result }) => result !== undefined);
    const said = { plugin: "author", name: "news.first", payload: { n: 1 } };
    expect(journal.flatMap(({ bus }) => bus ?? [])).toEqual([
      { session_id: sessionId, context_id: expect.any(String) as string, ...said },
    ]);
    await watch.event("plugin_event_added");
    expect(watch.news.filter(({ type }) => type === "plugin_event")).toEqual([
      { type: "plugin_event", ...said },
    ]);
    expect(watch.payloads("plugin_event_added")).toEqual([{ type: "plugin_event_added", ...said }]);
    expect(bystander.news.filter(({ type }) => type === "plugin_event")).toEqual([]);
    expect(resultsOf(await author.journal())).toEqual([{ name: "news.first", ...PUBLISHED }]);
    await kernel.close();
    expect((await author.journal()).filter(({ bus }) => bus !== undefined)).toEqual([]);
    expect(await author.heard("plugin_event_added")).toEqual([]);
  });

  test("[E-147] [S-241] what is recorded is kept by a reopened session, and never shown to a model", async () => {
    const author = await createListener("author", {
      on: { run_started: [{ payload: "a secret between plugins" }] },
    });
    const kernel = await openTestKernel({ config: author.toml, answers: [{ text: "ok" }] });
    const { sessionId, watch } = await kernel.run("Hi");
    await watch.event("plugin_event_added");
    await kernel.close();
    const again = await openTestKernel({ on: kernel, answers: [{ text: "ok" }] });
    const second = await again.run("And now?", { session: sessionId });
    expect(second.watch.payloads("plugin_event_added")[0]?.payload).toBe(
      "a secret between plugins",
    );
    expect(kernel.server.requests.length).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(kernel.server.requests)).not.toContain("a secret between plugins");
  });

  test.for([
    [{ publish_bus: true }, { bus: "published", durable: "rejected" }, 0],
    [{ publish_session_events: true }, { bus: "rejected", durable: "published" }, 1],
  ] as const)(
    "[E-147] with %j alone it takes one route",
    async ([capabilities, routes, recorded]) => {
      const author = await createListener("listener", { capabilities });
      const kernel = await openTestKernel({
        config: author.toml,
        answers: [{ calls: [publish([{ name: "n" }])] }, { text: "ok" }],
      });
      const { watch } = await kernel.run("Hi");
      expect(answers(watch)).toEqual([{ name: "n", ...routes }]);
      const buses = watch.news.filter(({ type }) => type === "plugin_event");
      expect(buses).toHaveLength(1 - recorded);
      expect(watch.payloads("plugin_event_added")).toHaveLength(recorded);
    },
  );

  test("[E-146] as a notification it is answered by one", async () => {
    const author = await createListener("listener", {
      on: { run_started: [{ name: "told", form: "notification" }] },
    });
    const kernel = await openTestKernel({ config: author.toml, answers: [{ text: "ok" }] });
    const { watch } = await kernel.run("Hi");
    const journal = await author.until(({ emitted }) => emitted !== undefined);
    expect(journal.flatMap(({ emitted }) => emitted ?? [])).toEqual([
      { name: "told", ...PUBLISHED },
    ]);
    expect((await watch.event("plugin_event_added")).payload.name).toBe("told");
  });

  test("[E-146] one that the manifest does not declare is refused, and noted in its session", async () => {
    const author = await createListener("listener", { capabilities: {} });
    const kernel = await openTestKernel({
      config: author.toml,
      answers: [{ calls: [publish([{ name: "n" }])] }, { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    expect(answers(watch)).toMatchObject([REJECTED]);
    const events = await closeAndRead(kernel);
    expect(diagnosticsOf(events)).toEqual([
      { plugin: "listener", kind: "unsupported_capability", count: 1 },
    ]);
  });
});

describe("a context", () => {
  test("[E-148] [E-149] [S-241] it serves one publication; a second one is refused and noted in its session", async () => {
    const author = await createListener("listener", {
      on: { run_started: [{ name: "one" }, { name: "two" }, { name: "three" }] },
    });
    const kernel = await openTestKernel({ config: author.toml, answers: [{ text: "ok" }] });
    await kernel.run("Hi");
    const journal = await author.until(({ result }) => result?.name === "three");
    expect(resultsOf(journal)).toMatchObject([PUBLISHED, REJECTED, REJECTED]);
    const events = await closeAndRead(kernel);
    expect(payloadsOf(events, "plugin_event_added").map(({ name }) => name)).toEqual(["one"]);
    expect(diagnosticsOf(events)).toEqual([
      { plugin: "listener", kind: "context_mismatch", count: 2 },
    ]);
    expect(payloadsOf(events, "plugin_diagnostic")[0]?.message).toContain("spent");
  });

  test("[E-148] that of a call serves once as well, and is spent when the call has been answered", async () => {
    const author = await createListener("listener");
    const kernel = await openTestKernel({
      config: author.toml,
      answers: [
        { calls: [publish([{ name: "one" }, { name: "two" }])] },
        { calls: [publish([])] },
        { calls: [publish([{ name: "three", context: "answered" }, { name: "four" }])] },
        { text: "ok" },
      ],
    });
    const { watch } = await kernel.run("Hi");
    expect(answers(watch)).toMatchObject([PUBLISHED, REJECTED, REJECTED, PUBLISHED]);
    expect(diagnosticsOf(await closeAndRead(kernel))).toEqual([
      { plugin: "listener", kind: "context_mismatch", count: 2 },
    ]);
  });

  test("[E-116] that of an event serves for nothing but publishing", async () => {
    const write = { method: "host/artifacts/write", params: { text: "mine" } };
    const author = await createListener("listener", {
      capabilities: { subscribe_events: true, publish_bus: true, host: ["artifacts.write"] },
      on: { run_started: [write, { name: "news" }] },
    });
    const kernel = await openTestKernel({ config: author.toml, answers: [{ text: "ok" }] });
    await kernel.run("Hi");
    const journal = await author.until(({ result }) => result?.name === "news");
    expect(resultsOf(journal)).toEqual([
      { name: "host/artifacts/write", error: "context_invalid" },
      { name: "news", bus: "published", durable: "rejected" },
    ]);
  });

  test("[E-149] it cannot be turned on another session; one that is unknown is noted nowhere", async () => {
    const kernelListener = await createListener("listener");
    const kernel = await openTestKernel({ config: kernelListener.toml });
    kernel.server.enqueue({ text: "ok" });
    const victim = await kernel.run("Hi");
    const aimed = (context: string) => publish([{ session: victim.sessionId, context }]);
    kernel.server.enqueue({ calls: [aimed("own")] }, { calls: [aimed("unknown")] }, { text: "ok" });
    const { watch, sessionId } = await kernel.run("Hi");
    expect(answers(watch)).toMatchObject([REJECTED, REJECTED]);
    await kernel.close();
    const logs = await Promise.all((await findLogs(kernel.project)).map(readLog));
    const of = (session: SessionId) => logs.find(([first]) => first?.session_id === session) ?? [];
    expect(diagnosticsOf(of(victim.sessionId))).toEqual([]);
    expect(payloadsOf(of(victim.sessionId), "plugin_event_added")).toEqual([]);
    expect(diagnosticsOf(of(sessionId))).toEqual([
      { plugin: "listener", kind: "context_mismatch", count: 1 },
    ]);
  });
});

test("[E-006] an emission with an unknown member, or without a payload, is no emission", async () => {
  const emit = (params: Record<string, unknown>) => ({ method: "plugin/emit", params });
  const author = await createListener("listener");
  const kernel = await openTestKernel({ config: author.toml });
  const session = await kernel.createSession();
  kernel.server.enqueue(
    {
      calls: [
        publish([
          emit({ session_id: session, name: "n", payload: 1, urgent: true }),
          emit({ session_id: session, name: "n" }),
          emit({ session_id: session, name: 7, payload: 1 }),
          { name: "proper" },
        ]),
      ],
    },
    { text: "ok" },
  );
  const { watch } = await kernel.run("Hi", { session });
  expect(answers(watch)).toMatchObject([
    { error: "invalid_params" },
    { error: "invalid_params" },
    { error: "invalid_params" },
    PUBLISHED,
  ]);
  expect(watch.payloads("plugin_event_added").map(({ name }) => name)).toEqual(["proper"]);
});

describe("a size", () => {
  test.for<[string, EmitAction, object]>([
    ["a payload of 256 KiB", { characters: 256 * KIB - 2 }, PUBLISHED],
    ["one byte more", { characters: 256 * KIB - 1 }, TOO_MUCH],
    ["a name of 128 characters", { name: "é".repeat(128) }, PUBLISHED],
    ["one character more", { name: "é".repeat(129) }, TOO_MUCH],
    ["a name with a control", { name: "a\u0007b" }, TOO_MUCH],
    ["an empty name", { name: "" }, TOO_MUCH],
    ["a whole event of over 272 KiB", { characters: 250 * KIB, meta: 23 * KIB }, TOO_MUCH],
    ["a payload nested 128 times, itself in the event", { levels: 127 }, PUBLISHED],
    ["one level more", { levels: 128 }, TOO_MUCH],
    ["a payload that is nested very deeply", { levels: 3_000 }, TOO_MUCH],
    ["a payload that is a number", { payload: 0 }, PUBLISHED],
  ])("[E-151] [S-242] %s", async ([, action, routes]) => {
    const author = await createListener("listener", { on: { run_started: [action] } });
    const kernel = await openTestKernel({ config: author.toml, answers: [{ text: "ok" }] });
    await kernel.run("Hi");
    const journal = await author.until(({ result }) => result !== undefined);
    expect(resultsOf(journal)).toMatchObject([routes]);
    const events = await closeAndRead(kernel);
    const passes = routes === PUBLISHED;
    expect(payloadsOf(events, "plugin_event_added")).toHaveLength(passes ? 1 : 0);
    expect(diagnosticsOf(events)).toEqual(
      passes ? [] : [{ plugin: "listener", kind: "oversized_event", count: 1 }],
    );
  });

  test("[E-151] 4 MiB pass in a minute of a session, the rest is dropped, rejected and noted", async () => {
    const author = await createListener("listener", {
      capabilities: {
        subscribe_events: ["tool_call_started", "tool_call_terminated"],
        publish_bus: true,
        publish_session_events: true,
      },
      on: {
        tool_call_started: [{ characters: 250 * KIB }],
        tool_call_terminated: [{ characters: 250 * KIB }],
      },
    });
    const calls = Array.from({ length: 10 }, () => publish([]));
    const kernel = await openTestKernel({
      config: author.toml,
      answers: [{ calls }, { text: "ok" }],
    });
    await kernel.run("Hi");
    await expect.poll(async () => resultsOf(await author.journal()).length).toBe(20);
    const events = await closeAndRead(kernel);
    expect(payloadsOf(events, "plugin_event_added")).toHaveLength(16);
    expect(diagnosticsOf(events)).toEqual([{ plugin: "listener", kind: "rate_limited", count: 4 }]);
  });
});
