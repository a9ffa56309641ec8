import { connect as connectSocket, createServer, type Socket } from "node:net";
import { connectDaemon } from "@cookie-agent/sdk/client";
import {
  ApprovalList,
  ApprovalRespond,
  type ClientKey,
  EventsSubscribe,
  PluginsStatus,
  RunCancel,
  RunStart,
  RunSteer,
  SessionCreate,
  SessionGet,
  SessionList,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { openDaemon, type TestDaemon } from "../../support/open-daemon.ts";
import { agentDocument } from "../../support/open-test-kernel.ts";
import { openRaw } from "../../support/raw-websocket.ts";
import { SessionWatch } from "../../support/session-watch.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const MIB = 1024 * 1024;

describe("several clients of one daemon", () => {
  test("[D-060] [D-102] see the same run; the one that started it may leave", async () => {
    const gate = createGate();
    const daemon = await openDaemon({
      answers: [
        { text: "a", calls: [bash("echo 1")] },
        { text: ["b", "c"], until: gate.opened },
      ],
    });
    const [starter, other] = [await daemon.connect(), await daemon.connect()];
    const { sessionId, runId } = await daemon.startRun(starter, "Hi");
    const watch = new SessionWatch(other, sessionId);
    await watch.event("tool_call_terminated");
    starter.close();
    gate.open();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.events.map(({ seq }) => seq)).toEqual(watch.events.map((_, index) => index + 1));
    expect((await other.request(SessionGet, { session_id: sessionId })).session).toMatchObject({
      status: "completed",
      access: "owned",
    });
  });

  test("[D-037] [D-152] an approval waits for one that can answer it, whoever asked", async () => {
    const daemon = await openDaemon({
      agents: { primary: agentDocument({ bash: "ask" }) },
      config: "[approval]\ntimeout_ms = 1\n",
      answers: [{ calls: [bash("echo approved")] }, { text: "ok" }],
    });
    const person = await daemon.connect();
    const { session } = await person.request(SessionCreate, { selection: daemon.selection });
    const watch = new SessionWatch(person, session.session_id, { interactive: true });
    const script = await daemon.connect();
    const { runId } = await daemon.startRun(script, "Hi", {
      session: session.session_id,
      mode: "ask",
    });
    await watch.event("approval_requested");
    const { approvals } = await person.request(ApprovalList, {
      root_session_id: session.session_id,
    });
    const { request } = approvals[0] ?? {};
    if (request === undefined) throw new Error("no approval");
    expect(request.constraints.expires_at).toBeNull();
    await person.request(ApprovalRespond, {
      session_id: session.session_id,
      approval_id: request.approval_id,
      request_revision: request.revision,
      operation_fingerprint: request.operation_fingerprint,
      client_response_id: "answer" as ClientKey,
      decision: "approve_once",
    });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("\napproved\n");
  });

  test("[D-090] [D-091] [S-091] a session that another process owns can be read and not changed", async () => {
    const gate = createGate();
    const owner = await openDaemon({ answers: [{ text: ["a", "b"], until: gate.opened }] });
    const { sessionId, runId } = await owner.startRun(await owner.connect(), "Hi");
    const reader = await openDaemon({ on: owner });
    const client = await reader.connect();
    await expect.poll(async () => (await client.request(SessionList, {})).sessions.length).toBe(1);
    expect((await client.request(SessionGet, { session_id: sessionId })).session.access).toBe(
      "foreign",
    );
    const page = await client.request(EventsSubscribe, { session_id: sessionId });
    expect(page).toMatchObject({ live: false });
    await expect(
      client.request(RunStart, {
        session_id: sessionId,
        client_run_id: "other" as ClientKey,
        selection: reader.selection,
        input: "mine",
      }),
    ).rejects.toMatchObject({
      code: "session_foreign",
      message: `session ${sessionId} is in use by another cookie process; wait until that one ends, or start a new session`,
    });
    expect(await client.request(RunCancel, { run_id: runId })).toEqual({ cancelled: false });
    gate.open();
  });
});

describe("a client that does not read", () => {
  test("[D-080] [D-082] [D-083] waits at its own socket, while runs and other clients go on", async () => {
    const daemon = await openDaemon({
      answers: [
        { calls: [bash("head -c 60000000 /dev/zero | tr '\\0' x | fold -w 1000")] },
        { text: "ok" },
      ],
    });
    const client = await daemon.connect();
    const { session } = await client.request(SessionCreate, { selection: daemon.selection });
    const slow = await openRaw(daemon);
    await slow.greet();
    await slow.call(1, "events.subscribe", { session_id: session.session_id });
    slow.socket.pause();
    for (let id = 2; id < 3000; id += 1) {
      slow.sendJson({ jsonrpc: "2.0", id, method: "runtime.snapshot.get" });
      if (id % 10 === 0) slow.ping("x".repeat(100));
    }
    const { runId } = await daemon.startRun(client, "Hi", { session: session.session_id });
    const watch = new SessionWatch(client, session.session_id, { outputs: false });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect((await client.request(PluginsStatus, {})).plugins).toHaveLength(2);
    const received = slow.socket.bytesRead;

    // It reads again: its answers are all there, in frames that are whole, and the loss of output is told.
    slow.socket.resume();
    const answered = new Set<unknown>();
    const methods = new Set<unknown>();
    while (answered.size < 2998) {
      const { id, method } = await slow.next();
      if (id !== undefined) answered.add(id);
      methods.add(method);
    }
    expect(methods).toContain("events.tool_output_snapshot");
    expect(received).toBeLessThan(8 * MIB);
    slow.socket.destroy();
  });

  test("[D-100] one that never reads again does not keep the daemon from ending", async () => {
    const daemon = await openDaemon({ answers: [{ text: "ok" }] });
    const stuck = await openRaw(daemon);
    await stuck.greet();
    stuck.socket.pause();
    const client = await daemon.connect();
    await daemon.startRun(client, "Hi");
    const ended = await daemon.stop();
    expect(ended.exitCode).toBe(0);
    stuck.socket.resume();
    await stuck.closed;
  });
});

test("[D-062] [D-151] an event that no frame holds is refused with the reason, live and stored", async () => {
  const gate = createGate();
  const daemon = await openDaemon({
    answers: [{ text: "ok", until: gate.opened }, { text: "ok" }],
  });
  const client = await daemon.connect();
  const { sessionId, runId } = await daemon.startRun(client, "Hi");
  const watch = new SessionWatch(client, sessionId);
  await watch.event("run_started");
  const input = "x".repeat(16 * MIB - 160);
  await client.request(RunSteer, { run_id: runId, input });
  await expect(watch.ended).rejects.toMatchObject({ code: "resource_limit" });
  await expect(
    (await daemon.connect()).request(EventsSubscribe, {
      session_id: sessionId,
      cursor: watch.events.at(-1)?.seq ?? 0,
    }),
  ).rejects.toMatchObject({ code: "resource_limit" });
  expect((await client.request(PluginsStatus, {})).plugins).toHaveLength(2);
  gate.open();
});

describe("a connection that is lost", () => {
  test("[D-124] [D-126] [D-128] comes back by itself, and subscriptions go on without loss or repetition", async () => {
    const gates = [createGate(), createGate()];
    const daemon = await openDaemon({
      answers: [
        { text: ["a", "b"], calls: [bash("echo 1")] },
        { text: ["c"], until: gates[0]?.opened ?? Promise.resolve(), calls: [bash("echo 2")] },
        { text: ["d"], until: gates[1]?.opened ?? Promise.resolve() },
      ],
    });
    const way = await openDetour(daemon);
    const states: string[] = [];
    const client = await connectDaemon({
      url: way.url,
      token: daemon.token,
      onConnection: (state) => states.push(state),
    });
    onTestFinished(() => client.close());
    const { sessionId, runId } = await daemon.startRun(client, "Hi");
    const watch = new SessionWatch(client, sessionId);
    await watch.event("tool_call_terminated");
    way.block();
    await expect.poll(() => states).toEqual(["lost"]);
    await expect(client.request(SessionList, {})).rejects.toMatchObject({ code: "closed" });
    gates[0]?.open();
    way.unblock();
    await watch.event(
      "tool_call_terminated",
      ({ tool_call_id }) =>
        tool_call_id !== watch.payloads("tool_call_terminated")[0]?.tool_call_id,
    );
    expect(states).toEqual(["lost", "restored"]);
    gates[1]?.open();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.events.map(({ seq }) => seq)).toEqual(watch.events.map((_, index) => index + 1));
  });

  test("[D-128] is given up when another daemon answers there, and subscriptions end", async () => {
    const gate = createGate();
    const daemon = await openDaemon({ answers: [{ text: ["a"], until: gate.opened }] });
    const states: string[] = [];
    const client = await daemon.connect((state) => states.push(state));
    const { sessionId } = await daemon.startRun(client, "Hi");
    const watch = new SessionWatch(client, sessionId);
    await watch.event("text_delta");
    const port = Number(new URL(daemon.url).port);
    expect((await daemon.stop()).exitCode).toBe(0);
    await openDaemon({ on: daemon, port });
    await watch.ended;
    expect(states).toEqual(["lost", "closed"]);
    expect(watch.payloads("run_cancelled")).toHaveLength(1);
    await expect(client.request(SessionList, {})).rejects.toMatchObject({ code: "closed" });
  });

  test("[D-007] [D-130] an address that is not of this machine is refused before a socket is opened", async () => {
    const token = "t".repeat(43);
    const problems = await Promise.all(
      [
        "no url",
        "http://127.0.0.1:7419/ws",
        "ws://user:pass@127.0.0.1:7419/ws",
        "ws://example.com/ws",
        "ws://127.0.0.1.example.com/ws",
        "ws://[::2]/ws",
        "ws://127.0.0.1:7419/",
        "ws://127.0.0.1:7419/ws/",
        "ws://127.0.0.1:7419/ws?",
        "ws://127.0.0.1:7419/ws#",
      ].map((url) =>
        connectDaemon({ url, token }).then(String, ({ code, message }) => `${code} ${message}`),
      ),
    );
    for (const problem of problems)
      expect(problem).toMatch(/^invalid_address the URL of a daemon: /);
    expect(new Set(problems).size).toBe(7);
    for (const wrong of [
      "",
      "t".repeat(42),
      "t".repeat(44),
      `${"t".repeat(42)}=`,
      `${"t".repeat(42)}\n`,
    ]) {
      await expect(connectDaemon({ token: wrong })).rejects.toMatchObject({
        code: "invalid_address",
        message: expect.not.stringContaining("ttt"),
      });
    }
  });
});

/** A way to the daemon that can be cut. */
async function openDetour({ url }: TestDaemon) {
  const sockets = new Set<Socket>();
  let blocked = false;
  const server = createServer((near) => {
    if (blocked) return near.destroy();
    const far = connectSocket(Number(new URL(url).port), "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    return near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  return {
    url: `ws://127.0.0.1:${port}/ws`,
    block() {
      blocked = true;
      for (const socket of sockets) socket.destroy();
    },
    unblock() {
      blocked = false;
    },
  };
}
