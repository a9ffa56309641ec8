import { PluginsStatus, SessionPermissionSet } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { createListener, type Heard } from "../../support/listener-plugin.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { findLogs, payloadsOf, readLog } from "../../support/session-log.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const ended = (entry: { heard?: Heard }) => entry.heard?.event.type === "run_completed";
const UNSHOWN = ["text_delta", "reasoning_delta"];

describe("a subscriber", () => {
  test("[E-140] [E-144] [S-273] it hears what its session records, in order and from the first event, but no deltas", async () => {
    const listener = await createListener();
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [
        { reasoning: "hmm", text: ["let ", "me ", "see"], calls: [bash("echo 1")] },
        { text: "ok" },
      ],
    });
    const { watch, sessionId } = await kernel.run("Hi");
    await listener.until(ended);
    const heard = await listener.heard();
    expect(watch.types).toEqual(expect.arrayContaining(UNSHOWN));
    expect(
      heard.map(({ seq, run_id, timestamp, event }) => [seq, run_id, timestamp, event]),
    ).toEqual(
      watch.events
        .filter(({ payload }) => !UNSHOWN.includes(payload.type))
        .map(({ seq, run_id, timestamp, payload }) => [seq, run_id, timestamp, payload]),
    );
    expect(heard[0]).toMatchObject({ session_id: sessionId, seq: 1, run_id: null });
    expect(new Set(heard.map(({ context_id }) => context_id)).size).toBe(heard.length);
  });

  test("[E-140] [S-238] an event that it hears stands in the log already", async () => {
    const listener = await createListener("listener", { config: { looks_on_disk: true } });
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [{ calls: [bash("echo 1")] }, { text: "ok" }],
    });
    await kernel.run("Hi");
    const entries = await listener.until(ended);
    const heard = entries.flatMap((entry) => (entry.heard === undefined ? [] : [entry]));
    expect(heard.length).toBeGreaterThan(10);
    expect(heard.filter(({ onDisk }) => onDisk !== true)).toEqual([]);
  });

  test("[E-140] of a call's progress it hears messages, never output", async () => {
    const listener = await createListener();
    const kernel = await openTestKernel({
      config: `${listener.toml}\n${fixturePlugin("flood")}`,
      answers: [
        {
          calls: [
            { name: "tell", arguments: { messages: 3, text: "half way" } },
            { name: "flood", arguments: { bytes: 200_000 } },
          ],
        },
        { text: "ok" },
      ],
    });
    await kernel.run("Hi");
    await listener.until(ended);
    const progress = await listener.heard("tool_call_progress");
    expect(progress.length).toBeGreaterThan(0);
    for (const { event } of progress) {
      expect(event).toEqual({
        type: "tool_call_progress",
        tool_call_id: expect.any(String) as string,
        message: "half way",
      });
    }
  });

  test("[E-140] a list of types is a filter, and deltas stay unheard even when they are listed", async () => {
    const listener = await createListener("listener", {
      capabilities: { subscribe_events: ["tool_call_terminated", "text_delta", "run_completed"] },
    });
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [{ text: "hm", calls: [bash("echo 1")] }, { text: "ok" }],
    });
    await kernel.run("Hi");
    await listener.until(ended);
    expect((await listener.heard()).map(({ event }) => event.type)).toEqual([
      "tool_call_terminated",
      "run_completed",
    ]);
  });

  test("[E-140] the process may subscribe to less than its manifest says", async () => {
    const listener = await createListener("listener", {
      config: { capabilities: { subscribe_events: ["run_completed"] } },
    });
    const kernel = await openTestKernel({ config: listener.toml, answers: [{ text: "ok" }] });
    await kernel.run("Hi");
    await listener.until(ended);
    expect((await listener.heard()).map(({ event }) => event.type)).toEqual(["run_completed"]);
  });

  test("[E-140] [E-051] [S-240] after a crash it hears what comes from then on, and nothing again", async () => {
    const listener = await createListener("listener", { manifest: { restart: "on_demand" } });
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [
        { calls: [{ name: "listener_publish", arguments: { crash: true } }] },
        { text: "it crashed" },
        { text: "again" },
      ],
    });
    const { sessionId, runId, watch } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("plugin_crashed");
    const crashedAt = watch.events.find(({ payload }) => payload.type === "tool_call_started");
    const second = await kernel.run("Hi again", { session: sessionId });
    await listener.until(ended);
    const heard = await listener.heard();
    const seqs = heard.map(({ seq }) => seq);
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    const ofFirst = heard.filter((event) => event.run_id === runId);
    expect(ofFirst.every(({ seq }) => seq <= (crashedAt?.seq ?? 0))).toBe(true);
    const ofSecond = heard.filter((event) => event.run_id === second.runId);
    expect(ofSecond[0]?.event.type).toBe("run_started");
  });

  test("[E-143] one that does not read keeps no run from going on, and no kernel from closing", async () => {
    const listener = await createListener("listener", {
      gated: true,
      entry: "shutdown_grace_ms = 100",
    });
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [{ calls: [bash("echo 1")] }, { text: "ok" }],
    });
    const { end } = await kernel.run("Hi");
    expect(end.type).toBe("run_completed");
    await listener.until(({ blocked }) => blocked === true);
    await kernel.close();
    expect((await listener.heard()).map(({ seq }) => seq)).toEqual([1]);
  });

  test("[E-144] [E-152] [S-239] [S-243] what it lost stands in its session, counted exactly", async () => {
    const listener = await createListener("listener", { gated: true });
    const kernel = await openTestKernel({ config: listener.toml, answers: [{ text: "ok" }] });
    const { sessionId } = await kernel.run("Hi");
    await listener.until(({ blocked }) => blocked === true);
    // More than its queue and the pipe before it can hold.
    for (let i = 0; i < 1_800; i += 1) {
      await kernel.client.request(SessionPermissionSet, {
        session_id: sessionId,
        action: "bash",
        resource: "make",
        effect: i % 2 === 0 ? "allow" : "deny",
      });
    }
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const lost = plugins.find(({ plugin }) => plugin === "listener")?.dropped_events ?? 0;
    expect(lost).toBeGreaterThan(300);
    const sets = (await kernel.client.readEvents(sessionId)).filter(
      ({ payload }) => payload.type === "session_permission_overlay_set",
    );
    expect(sets).toHaveLength(1_800);
    const last = sets.at(-1)?.seq;
    await listener.open();
    await listener.until(({ heard }) => heard?.seq === last);
    await kernel.close();
    const [log = ""] = await findLogs(kernel.project);
    const events = (await readLog(log)).filter(({ payload }) => !UNSHOWN.includes(payload.type));
    const isNews = ({ type }: { type: string }) => type === "plugin_diagnostic";
    const recorded = events.filter(({ payload }) => !isNews(payload));
    const heard = (await listener.heard()).filter(({ event }) => !isNews(event));
    const counts = payloadsOf(events, "plugin_diagnostic");
    expect(new Set(counts.map(({ kind, plugin }) => `${kind} ${plugin}`))).toEqual(
      new Set(["event_drop listener"]),
    );
    const noted = counts.reduce((sum, { count }) => sum + count, 0);
    expect(heard.length + noted).toBe(recorded.length);
    expect(counts.length).toBeLessThan(noted / 2);
  });

  test("[E-140] what a session recorded last is heard, although the kernel closes at once", async () => {
    const listener = await createListener();
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [{ until: new Promise(() => undefined) }],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    await kernel.start(session, "Hi");
    await watch.event("model_attempt_started");
    await kernel.close();
    expect((await listener.heard()).at(-1)?.event).toMatchObject({
      type: "run_cancelled",
      reason: "shutdown",
    });
  });

  test("a plugin that subscribes to nothing hears nothing", async () => {
    const listener = await createListener("listener", { capabilities: { publish_bus: true } });
    const kernel = await openTestKernel({
      config: listener.toml,
      answers: [{ calls: [{ name: "listener_publish", arguments: {} }] }, { text: "ok" }],
    });
    await kernel.run("Hi");
    await kernel.close();
    expect(await listener.journal()).toEqual([{ call: {} }]);
  });
});
