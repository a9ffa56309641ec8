import {
  CLIENT_PROTOCOL_VERSION,
  EventsSubscribe,
  EventsSubscription,
  Handshake,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { describe, expect, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { SessionWatch } from "../../support/session-watch.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });

describe("events.subscribe", () => {
  test("[S-063] [D-060] what is stored and what happens join without loss or repetition", async () => {
    const gate = createGate();
    const kernel = await openTestKernel({
      answers: [
        { text: "a", calls: [bash("echo 1")] },
        { text: "b", until: gate.opened },
      ],
    });
    const session = await kernel.createSession();
    const first = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    const late: SessionWatch[] = [];
    for (const type of ["text_delta", "tool_call_started", "tool_call_terminated"] as const) {
      await first.event(type);
      late.push(new SessionWatch(await kernel.connect(), session));
    }
    gate.open();
    await first.end(runId);
    const seqs = Array.from({ length: first.types.length }, (_, index) => index + 1);
    for (const watch of [first, ...late]) {
      await watch.end(runId);
      expect(watch.events.map(({ seq }) => seq)).toEqual(seqs);
    }
  });

  test("[D-064] pages say that there is more, and only the last one is live", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "ok" }] });
    const { sessionId: session_id, watch } = await kernel.run("Hi");
    const pages: { count: number; more: boolean | undefined; live: boolean | undefined }[] = [];
    for (let cursor = 0, more = true; more; ) {
      const page = await kernel.client.request(EventsSubscribe, { session_id, cursor, limit: 4 });
      cursor = page.events.at(-1)?.seq ?? cursor;
      more = page.more === true;
      pages.push({ count: page.events.length, more: page.more, live: page.live });
    }
    expect(watch.types).toHaveLength(10);
    expect(pages).toEqual([
      { count: 4, more: true, live: undefined },
      { count: 4, more: true, live: undefined },
      { count: 2, more: undefined, live: true },
    ]);
  });

  test("[D-063] subscribing again on a connection replaces the tail", async () => {
    const gate = createGate();
    const kernel = await openTestKernel({ answers: [{ text: ["a", "b"], until: gate.opened }] });
    const session_id = await kernel.createSession();
    const runId = await kernel.start(session_id, "Hi");
    const watch = kernel.watch(session_id);
    await watch.event("text_delta");
    const again = new SessionWatch(kernel.client, session_id);
    await again.event("text_delta");
    gate.open();
    await again.end(runId);
    await watch.ended;
    const seen = again.events.map(({ seq }) => seq);
    expect(new Set(seen).size).toBe(seen.length);
    expect(watch.types).not.toContain("run_completed");
  });

  test("[S-023] [D-060] a session that is not on disk yet streams its buffer", async () => {
    const kernel = await openTestKernel();
    const session_id = await kernel.createSession();
    const page = await kernel.client.request(EventsSubscribe, { session_id });
    expect(page.events.map(({ payload }) => payload.type)).toEqual(["session_created"]);
    expect(page.live).toBe(true);
  });

  test("[D-065] [D-070] a late subscriber gets the output so far of the calls that run", async () => {
    const kernel = await openTestKernel({
      answers: [
        { calls: [bash("echo early; while ! [ -e go ]; do sleep 0.02; done; echo late")] },
        { text: "ok" },
      ],
    });
    const session = await kernel.createSession();
    const first = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await first.output("early");
    const second = new SessionWatch(await kernel.connect(), session);
    await second.output("early");
    await kernel.project.write("go", "");
    await second.end(runId);
    expect(await second.output("late")).toContain("early");
  });

  test("an unknown session is session_missing", async () => {
    const kernel = await openTestKernel();
    const session_id = "01890000-0000-7000-8000-000000000000" as SessionId;
    await expect(kernel.client.request(EventsSubscribe, { session_id })).rejects.toMatchObject({
      code: "session_missing",
    });
  });

  test("[D-062] [S-063] a client that takes nothing loses its tail at a gap that names the last event before it", async () => {
    const kernel = await openTestKernel({ answers: [...manyCalls(), { text: "ok" }] });
    const session_id = await kernel.createSession();
    const gate = createGate();
    const slow = new Connection({ transport: kernel.kernel.connect(), side: "client" });
    const got: number[] = [];
    let gap: number | undefined;
    slow.onNotification(EventsSubscription, async (news) => {
      if (news.type === "event") got.push(news.event.seq);
      else gap = news.last_delivered_seq;
      await gate.opened;
    });
    slow.listen();
    await slow.request(Handshake, { protocol_version: CLIENT_PROTOCOL_VERSION });
    const page = await slow.request(EventsSubscribe, { session_id, outputs: false });
    const { watch } = await kernel.run("Hi", { session: session_id });
    gate.open();
    await expect.poll(() => gap).toBeDefined();
    const seqs = [...page.events.map(({ seq }) => seq), ...got];
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(gap).toBe(seqs.at(-1));
    expect(gap).toBeLessThan(watch.events.length);
    const rest = await slow.request(EventsSubscribe, { session_id, cursor: gap ?? 0 });
    expect(rest.events.map(({ seq }) => seq)).toEqual(
      watch.events.map(({ seq }) => seq).slice(gap),
    );
    slow.close();
  });

  test("a reader that lags behind its client gets every event all the same", async () => {
    const kernel = await openTestKernel({ answers: [...manyCalls(), { text: "ok" }] });
    const session = await kernel.createSession();
    const slow = await kernel.connect();
    const news = slow.subscribe(session, { outputs: false });
    await news.next();
    const { watch } = await kernel.run("Hi", { session });
    const seqs = [1];
    for await (const item of news) {
      if (item.type === "event") seqs.push(item.event.seq);
      if (item.type === "event" && item.event.payload.type === "run_completed") break;
    }
    expect(seqs).toEqual(watch.events.map(({ seq }) => seq));
  });
});

/** Turns that leave more than a thousand events. */
function manyCalls() {
  const call = { name: "read", arguments: { filePath: "x" } };
  return Array.from({ length: 10 }, () => ({ calls: Array.from({ length: 60 }, () => call) }));
}

test("[D-102] a run goes on when the client that started it is gone", async () => {
  const gate = createGate();
  const kernel = await openTestKernel({ answers: [{ text: "still here", until: gate.opened }] });
  const session = await kernel.createSession();
  const runId = await kernel.start(session, "Hi");
  const other = new SessionWatch(await kernel.connect(), session);
  await other.event("text_delta");
  kernel.client.close();
  gate.open();
  expect(await other.end(runId)).toEqual({ type: "run_completed", final_text: "still here" });
});
