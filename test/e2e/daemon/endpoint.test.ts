import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { openDaemon, type TestDaemon } from "../../support/open-daemon.ts";
import { askEndpoint, openRaw } from "../../support/raw-websocket.ts";
import { runCookie, startCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const portOf = ({ url }: TestDaemon) => new URL(url).port;

describe("the lines on stdout", () => {
  test("[D-001] [D-002] [D-003] [C-216] [C-005] are the fresh token and the address; the token is nowhere else", async () => {
    const daemon = await openDaemon({ config: fixturePlugin("echo"), args: ["--json"] });
    expect(daemon.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(daemon.url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/ws$/);
    expect(await daemon.cookie(["plugin", "list"])).toMatchObject({ exitCode: 0, stderr: "" });
    const ended = await daemon.stop();
    expect(ended).toMatchObject({ exitCode: 0, stdout: `${daemon.token}\n${daemon.url}\n` });
    expect(ended.stderr).not.toContain(daemon.token);
    for (const path of await readdir(daemon.project.stateDir, { recursive: true })) {
      const file = join(daemon.project.stateDir, path);
      const text = await readFile(file, "utf8").catch(() => "");
      expect(text, path).not.toContain(daemon.token);
    }
    const next = await openDaemon({ on: daemon });
    expect(next.token).not.toBe(daemon.token);
    const old = await daemon.cookie(["session", "list"], {
      env: { COOKIE_DAEMON_TOKEN: daemon.token },
    });
    expect(old.exitCode).toBe(1);
  });

  test("[D-001] a port that is in use is named, before anything is printed", async () => {
    const project = await useProject();
    const taken = createServer();
    await new Promise<void>((resolve) => {
      taken.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as { port: number };
    expect(await runCookie(project, ["daemon", "--port", String(port)])).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringContaining(`error: port ${port} of 127.0.0.1 is in use`),
    });
  });

  test("[D-001] [C-038] server.port is taken from the configuration, another host is refused", async () => {
    const project = await useProject();
    await project.writeState("config.toml", '[server]\nhost = "0.0.0.0"\n');
    expect(await runCookie(project, ["daemon"])).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(
        /config\.toml:2: server\.host: must be 127\.0\.0\.1 \(from elsewhere use a tunnel/,
      ),
    });
    await project.writeState("config.toml", "[server]\nport = 0\n");
    const daemon = startCookie(project, ["daemon"]);
    await expect.poll(() => daemon.printed.stdout.split("\n").length).toBe(3);
    expect(daemon.printed.stdout).not.toContain(":7419/");
    daemon.child.kill("SIGINT");
    expect(await daemon.result).toMatchObject({ exitCode: 0 });
  });

  test("[D-003] without a reader of the token there is no daemon", async () => {
    const project = await useProject();
    const daemon = startCookie(project, ["daemon", "--port", "0"]);
    daemon.child.stdout.destroy();
    expect(await daemon.result).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("the token cannot be handed over"),
    });
  });
});

describe("who may connect", () => {
  test("[D-004] exactly one right Authorization header, and the token nowhere else", async () => {
    const daemon = await openDaemon();
    const { url, token } = daemon;
    const status = async (headers: Record<string, string | string[]>, path = "/ws") => {
      const answer = await askEndpoint(url, { headers, path });
      if (!("socket" in answer)) return answer.status;
      answer.socket.socket.destroy();
      return 101;
    };
    expect(await status(bearer(token))).toBe(101);
    expect(await status({})).toBe(401);
    expect(await status(bearer(""))).toBe(401);
    expect(await status(bearer(`${token} `.repeat(200).trim()))).toBe(401);
    expect(await status(bearer(token.slice(0, -1)))).toBe(401);
    expect(await status(bearer(`${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`))).toBe(
      401,
    );
    expect(await status({ authorization: `bearer ${token}` })).toBe(401);
    expect(await status({ authorization: token })).toBe(401);
    expect(await status({ authorization: [`Bearer ${token}`, `Bearer ${token}`] })).toBe(401);
    expect(await status({ "sec-websocket-protocol": token })).toBe(401);
    expect(await status({ cookie: `token=${token}` })).toBe(401);
    expect(await status({}, `/ws?token=${token}`)).toBe(404);
  });

  test("[D-005] [B155] a request of a browser or for another host is refused before its token is looked at", async () => {
    const daemon = await openDaemon();
    const { url, token } = daemon;
    const status = async (headers: Record<string, string | string[]>) => {
      const answer = await askEndpoint(url, { headers: { ...bearer(token), ...headers } });
      if (!("socket" in answer)) return answer.status;
      answer.socket.socket.destroy();
      return 101;
    };
    for (const origin of [
      "http://evil.example",
      `http://127.0.0.1:${portOf(daemon)}`,
      "null",
      "",
    ]) {
      expect(await status({ origin }), origin).toBe(403);
      expect(await status({ origin, authorization: "Bearer wrong" }), origin).toBe(403);
    }
    for (const host of ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]:7419", "[::1]"]) {
      expect(await status({ host }), host).toBe(101);
    }
    for (const host of [
      "evil.example",
      "127.0.0.1.evil.example",
      "127.0.0.2",
      "localhost:",
      "0.0.0.0",
    ]) {
      expect(await status({ host }), host).toBe(403);
    }
  });

  test.for([
    ["none", ""],
    ["two", "Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n"],
    ["an empty one", "Host:\r\n"],
  ])("[D-005] one Host has to be named, %s is refused", async ([_, lines]) => {
    const daemon = await openDaemon();
    const socket = connect(Number(portOf(daemon)), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket";
    socket.write(
      `GET /ws HTTP/1.1\r\n${lines}${upgrade}\r\nAuthorization: Bearer ${daemon.token}\r\n\r\n`,
    );
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
  });

  test("[D-006] the path is exactly /ws, and /healthz says ok to whoever is local", async () => {
    const daemon = await openDaemon();
    const { url, token } = daemon;
    const ask = (path: string, more: object = {}) =>
      askEndpoint(url, { path, upgrade: false, ...more });
    expect(await ask("/healthz")).toMatchObject({ status: 200, body: "ok" });
    expect(await ask("/healthz", { headers: { origin: "http://evil.example" } })).toMatchObject({
      status: 403,
    });
    expect(await ask("/healthz", { headers: { host: "evil.example" } })).toMatchObject({
      status: 403,
    });
    for (const method of ["POST", "HEAD", "OPTIONS", "DELETE"]) {
      expect(await ask("/healthz", { method }), method).toMatchObject({ status: 404 });
    }
    const headers = bearer(token);
    for (const path of [
      "/",
      "/ws/",
      "/WS",
      "/ws?",
      "/ws?a=1",
      "/%77s",
      "/healthz?x",
      "//ws",
      "/healthz/",
    ]) {
      expect(await ask(path, { headers }), path).toMatchObject({ status: 404 });
      expect(await askEndpoint(url, { path, headers }), path).toMatchObject({ status: 404 });
    }
    expect(await ask("/ws")).toMatchObject({ status: 401 });
    expect(await ask("/ws", { headers })).toMatchObject({ status: 426 });
  });

  test("[D-010] neither compression nor a subprotocol is agreed on", async () => {
    const daemon = await openDaemon();
    const socket = await openRaw(daemon, {
      "sec-websocket-extensions": "permessage-deflate",
      "sec-websocket-protocol": "cookie, other",
    });
    await socket.greet();
    expect(socket.closeCode).toBeNull();
    socket.socket.destroy();
  });
});

test("[D-008] [E-046] a daemon's children see neither its token nor that of another daemon", async () => {
  const daemon = await openDaemon({
    answers: [
      {
        calls: [
          { name: "bash", arguments: { command: "env > seen; cat /proc/$PPID/environ >> seen" } },
        ],
      },
      { text: "done" },
    ],
    env: { COOKIE_DAEMON_TOKEN: "t".repeat(43) },
  });
  const client = await daemon.connect();
  const { sessionId } = await daemon.startRun(client, "Hi");
  for await (const news of client.subscribe(sessionId)) {
    if (news.type === "event" && news.event.payload.type === "run_completed") break;
  }
  const file = join(daemon.project.cwd, "seen");
  expect(existsSync(file)).toBe(true);
  const seen = await readFile(file, "latin1");
  expect(seen).toContain("PATH=");
  expect(seen).not.toContain("COOKIE_DAEMON_TOKEN");
  expect(seen).not.toContain(daemon.token);
});
