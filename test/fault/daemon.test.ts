import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunId, SessionId } from "@cookie-agent/sdk/protocol";
import { PluginsStatus, SessionList, SessionResume } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openDaemon, type TestDaemon } from "../support/open-daemon.ts";
import { openRaw } from "../support/raw-websocket.ts";
import { payloadsOf, readLog } from "../support/session-log.ts";
import { SessionWatch } from "../support/session-watch.ts";
import { onlyLog, openEnds } from "./support/log-lines.ts";
import { processesOf, waitUntil } from "./support/processes.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const HELD = bash("echo partial; echo > running; until [ -e go ]; do sleep 0.02; done; echo whole");
const CLIENT = fileURLToPath(new URL("support/daemon-client.mjs", import.meta.url));

const isRunning = ({ project }: TestDaemon) =>
  waitUntil(() => existsSync(join(project.cwd, "running")), "the command runs");

async function events({ project }: TestDaemon) {
  return readLog((await onlyLog(project)) ?? "");
}

test("[D-102] a client that is killed in mid-run ends nothing: the run goes on and others may follow it", async () => {
  const daemon = await openDaemon({ answers: [{ calls: [HELD] }, { text: "done" }] });
  const { url, token, selection } = daemon;
  const client = spawn(process.execPath, [CLIENT], {
    env: {
      PATH: process.env["PATH"],
      COOKIE_TEST_CLIENT: JSON.stringify({ url, token, selection }),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(client.stdout, "data")) as [Buffer];
  const { sessionId, runId } = JSON.parse(line.toString()) as {
    sessionId: SessionId;
    runId: RunId;
  };
  await isRunning(daemon);
  client.kill("SIGKILL");
  await once(client, "close");

  const watch = new SessionWatch(await daemon.connect(), sessionId);
  expect(await watch.output("partial")).toContain("partial");
  await daemon.project.write("go", "");
  expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
  expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("whole");
});

describe("a daemon that is asked to end", () => {
  test.for(["SIGINT", "SIGTERM"] as const)(
    "[signal: tool call] [D-100] records its run as cancelled, says goodbye, and leaves a session to go on with (%s)",
    async (signal) => {
      const daemon = await openDaemon({ answers: [{ calls: [HELD] }] });
      const client = await daemon.connect();
      const { sessionId } = await daemon.startRun(client, "Hi");
      const raw = await openRaw(daemon);
      await raw.greet();
      await raw.call(1, "events.subscribe", { session_id: sessionId });
      await isRunning(daemon);
      expect(await daemon.stop(signal)).toMatchObject({ exitCode: 0, signal: null });
      await raw.closed;
      expect(raw.closeCode).toBe(1001);
      expect(raw.texts.some((text) => text.includes('"run_cancelled"'))).toBe(true);
      expect(processesOf(daemon.project)).toEqual([]);
      expect(readdirSync(join(daemon.project.stateDir, "run"))).toEqual([]);
      const left = await events(daemon);
      expect(openEnds(left)).toEqual({ runs: [], calls: [] });
      expect(payloadsOf(left, "run_cancelled")).toHaveLength(1);

      const next = await openDaemon({ on: daemon, answers: [{ text: "again" }] });
      const other = await next.connect();
      await other.request(SessionResume, { session_id: sessionId });
      const again = await next.startRun(other, "Go on", { session: sessionId });
      const watch = new SessionWatch(other, sessionId);
      expect(await watch.end(again.runId)).toMatchObject({ type: "run_completed" });
      expect(watch.types).not.toContain("run_interrupted");
    },
  );

  test("[D-100] takes no further client while it does, and a second signal ends it at once with 1", async () => {
    const daemon = await openDaemon({
      answers: [{ calls: [bash("trap '' TERM INT; echo > running; while :; do sleep 0.1; done")] }],
    });
    const client = await daemon.connect();
    await daemon.startRun(client, "Hi");
    await isRunning(daemon);
    daemon.process.child.kill("SIGTERM");
    await waitUntil(async () => {
      const refused = await daemon.connect().then(
        (late) => late.close(),
        ({ code }) => code as string,
      );
      return refused === "unreachable";
    }, "nobody is let in");
    daemon.process.child.kill("SIGTERM");
    expect(await daemon.process.result).toMatchObject({ exitCode: 1, signal: null });
    for (const pid of processesOf(daemon.project)) process.kill(pid, "SIGKILL");
  });

  test("[D-100] [C-223] a hang-up without a terminal does not end it", async () => {
    const daemon = await openDaemon();
    const client = await daemon.connect();
    daemon.process.child.kill("SIGHUP");
    daemon.process.child.kill("SIGHUP");
    expect((await client.request(PluginsStatus, {})).plugins).toHaveLength(2);
    expect((await client.request(SessionList, {})).sessions).toEqual([]);
  });
});

test("[killed: tool call] [D-101] [S-095] a daemon that is killed in mid-run leaves a session that the next one settles", async () => {
  const daemon = await openDaemon({ answers: [{ calls: [HELD] }] });
  const states: string[] = [];
  const client = await daemon.connect((state) => states.push(state));
  const { sessionId } = await daemon.startRun(client, "Hi");
  await isRunning(daemon);
  await daemon.stop("SIGKILL");
  await waitUntil(() => processesOf(daemon.project).length === 0, "nothing of it is left");
  expect(states).toEqual(["lost"]);
  client.close();

  const next = await openDaemon({ on: daemon, answers: [{ text: "again" }] });
  const other = await next.connect();
  const again = await next.startRun(other, "Go on", { session: sessionId });
  const watch = new SessionWatch(other, sessionId);
  expect(await watch.end(again.runId)).toMatchObject({ type: "run_completed" });
  expect(watch.payloads("run_interrupted")).toMatchObject([{ reason: "daemon restart" }]);
});
