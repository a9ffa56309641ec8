import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { openKernel } from "@cookie-agent/kernel";
import { CookieClient } from "@cookie-agent/sdk/client";
import {
  type RunId,
  RuntimeSnapshotGet,
  type SessionId,
  type ToolCallId,
} from "@cookie-agent/sdk/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalArtifactStore } from "../../kernel/dist/artifact/local-artifact-store.js";
import { PluginBus } from "../../kernel/dist/event/plugin-bus.js";
import { PluginHost } from "../../kernel/dist/plugin/plugin-host.js";
import { callOf, never, openHost } from "../unit/kernel/plugin/open-host.ts";
import { shipped } from "../unit/kernel/plugin/shipped-fixtures.ts";
import { BenchReport } from "./support/bench-report.ts";
import { waitForCalm } from "./support/process-tree.ts";
import { median } from "./support/statistics.ts";

const FIXTURES = join(import.meta.dirname, "../fixtures/plugins");
const ROUNDS = 2000;
const WARM_UP = 300;
/** Calls that wait for one plugin at the same time (E-170). */
const CROWD = 1000;

const FLOOD_BYTES = 64 * 1024 * 1024;

const require = createRequire(import.meta.url);
const report = new BenchReport("kernel");
let home: string;
let cwd: string;

beforeAll(async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "cookie-bench-kernel-")));
  home = join(root, "home");
  cwd = join(root, "project");
  await mkdir(home);
  await mkdir(cwd);
});
afterAll(async () => {
  report.finish();
  await rm(dirname(home), { recursive: true, force: true });
});

test("[E-170] G: a warm call to a plugin costs the kernel at most a millisecond", async () => {
  const host = await PluginHost.open({
    firstParty: [],
    entries: [
      {
        name: "echo",
        layer: "user",
        launch: { kind: "path", directory: join(FIXTURES, "echo") },
        env: {},
        enabled: true,
        interceptionTimeoutMs: 2_000,
        startupTimeoutMs: 10_000,
        shutdownGraceMs: 3_000,
        toolTimeoutMs: 30_000,
        config: {},
        trust: "untrusted",
        grants: [],
        required: false,
      },
    ],
    hostEntry: join(FIXTURES, "host.mjs"),
    root: home,
    workspaceRoot: cwd,
    engineVersion: "0.1.0",
    env: {},
    secretEnvNames: new Set(),
    logger: { log: () => undefined },
    workspaceStillTrusted: () => Promise.resolve(true),
    services: {
      artifacts: createLocalArtifactStore({ storeDir: home }),
      configSection: () => Promise.reject(new Error("not served")),
      readArtifact: () => Promise.reject(new Error("not served")),
      writeArtifact: () => Promise.reject(new Error("not served")),
      log: () => undefined,
      events: {
        bus: new PluginBus(),
        append: () => Promise.reject(new Error("not served")),
        note: () => undefined,
      },
      toolOwner: () => undefined,
    },
  });
  const bare = openBareEcho();
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const sessionId = randomUUID() as SessionId;
  const call = () => {
    const params = echoParams(sessionId);
    const onProgress = () => Promise.resolve(0);
    const rest = { timeoutMs: 30_000, generation: null, rootSessionId: sessionId, onProgress };
    return host.call("echo", { params, ...rest }, signal);
  };
  try {
    expect(await call()).toMatchObject({ content: "ping" });
    await waitForCalm(15_000);
    const ours: number[] = [];
    const floor: number[] = [];
    for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
      const bareMs = await timed(() => bare.roundTrip(echoParams(sessionId)));
      const callMs = await timed(call);
      if (round < WARM_UP) continue;
      floor.push(bareMs);
      ours.push(callMs);
    }
    const columns = new Map([
      ["cookie", [median(ours)]],
      ["floor", [median(floor)]],
    ]);
    const what = "warm call to a plugin, ms";
    const whole = report.add({
      row: "G",
      what,
      digits: 3,
      values: columns,
      bar: { times: 5, of: "floor" },
    });
    const added = new Map([["cookie", [median(ours) - median(floor)]]]);
    report.add({ row: "G", what: "of it the kernel's, ms", digits: 3, values: added, bar: 1 });
    const crowds: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      crowds.push(
        await timed(async () => {
          const answers = await Promise.all(Array.from({ length: CROWD }, call));
          expect(answers.filter(({ content }) => content === "ping")).toHaveLength(CROWD);
        }),
      );
    }
    const crowd = new Map([["cookie", crowds]]);
    report.add({ row: "G", what: `${CROWD} calls at once, ms`, digits: 0, values: crowd });
    expect.soft(median(ours) - median(floor)).toBeLessThanOrEqual(1);
    expect.soft(whole.ours).toBeLessThanOrEqual(whole.limit ?? 0);
  } finally {
    bare.close();
    await host.close();
  }
});

test("[E-103] G: a call that floods a shared pipe holds up no neighbour on it", async () => {
  const { host } = await openHost({ firstParty: await shipped(["flood", "echo"]) });
  const neighbour = () => host.call("echo", callOf("echo", { text: "ping" }), never());
  await neighbour();
  await waitForCalm(15_000);
  let floods = true;
  const flood = callOf("flood", { bytes: FLOOD_BYTES, heed_acks: true });
  const flooding = host.call("flood", flood, never()).finally(() => {
    floods = false;
  });
  const waitsMs: number[] = [];
  while (floods) waitsMs.push(await timed(neighbour));
  await flooding;
  expect(flood.text().length).toBe(FLOOD_BYTES);
  const longest = new Map([["cookie", [Math.max(...waitsMs)]]]);
  const what = "longest call beside a flood of 64 MiB, ms";
  const { ours } = report.add({ row: "G", what, digits: 1, values: longest, bar: 50 });
  const usual = new Map([["cookie", [median(waitsMs)]]]);
  report.add({ row: "G", what: "usual call beside it, ms", digits: 1, values: usual });
  expect(waitsMs.length).toBeGreaterThan(10);
  expect.soft(ours).toBeLessThanOrEqual(50);
});

test("[E-170] G: opening the kernel with all first-party plugins starts no process", async () => {
  const before = childPids();
  const packages = ["@cookie-agent/plugin-fs", "@cookie-agent/plugin-bash"];
  const openedMs: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const start = performance.now();
    const kernel = await openKernel({
      cwd,
      homeDir: home,
      env: {},
      firstPartyDirectories: packages.map((name) =>
        dirname(require.resolve(`${name}/cookie-plugin.json`)),
      ),
      hostEntry: require.resolve("@cookie-agent/sdk/host"),
      trust: "stored",
      headless: true,
      engineVersion: "0.1.0",
    });
    openedMs.push(performance.now() - start);
    try {
      const client = await CookieClient.connect(kernel.connect());
      const { snapshot } = await client.request(RuntimeSnapshotGet, {});
      expect(snapshot.tools.length).toBeGreaterThan(0);
      expect(childPids().filter((pid) => !before.includes(pid))).toEqual([]);
      client.close();
    } finally {
      await kernel.close();
    }
  }
  const values = new Map([["cookie", openedMs]]);
  report.add({ row: "G", what: "opening the kernel in a warm process, ms", digits: 1, values });
});

function echoParams(sessionId: SessionId) {
  return {
    tool: "echo",
    session_id: sessionId,
    run_id: randomUUID() as RunId,
    invocation_id: randomUUID() as ToolCallId,
    arguments: { text: "ping" },
    cwd,
    workspace_root: cwd,
    resource: null,
    prepared: null,
    stdin: false,
    limits: { max_lines: 2000, max_bytes: 51_200 },
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** A process that parses a line and answers with one: the least that any plugin protocol on pipes can cost. */
function openBareEcho() {
  const program = `
    let rest = "";
    process.stdin.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\\n");
      rest = lines.pop();
      for (const line of lines) {
        const { id, params } = JSON.parse(line);
        const result = { content: params.arguments.text };
        process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
      }
    });`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] });
  let answered: (line: string) => void = () => undefined;
  createInterface({ input: child.stdout }).on("line", (line) => answered(line));
  let lastId = 0;
  return {
    async roundTrip(params: object): Promise<unknown> {
      lastId += 1;
      const line = new Promise<string>((resolve) => {
        answered = resolve;
      });
      const frame = { jsonrpc: "2.0", id: lastId, method: "plugin/tools/call", params };
      child.stdin.write(`${JSON.stringify(frame)}\n`);
      return JSON.parse(await line);
    },
    close: () => child.stdin.end(),
  };
}

function childPids(): string[] {
  return readdirSync("/proc/self/task").flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean),
  );
}
