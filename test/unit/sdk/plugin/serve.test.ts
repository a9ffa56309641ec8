import { execFile, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import {
  type Manifest,
  PluginInitialize,
  PluginShutdown,
  ToolsCall,
  ToolsProgress,
  ToolsProgressAck,
} from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleEntries } from "../support/bundle-fixture.ts";
import { type ChildPeer, spawnPeer } from "../support/child-peer.ts";
import { codeOf } from "../support/failure-of.ts";
import { callParams, ID, initializeParams } from "../support/plugin-params.ts";

const fixtures = path.join(import.meta.dirname, "../fixtures");
let bundle: Awaited<ReturnType<typeof bundleEntries>>;

beforeAll(async () => {
  bundle = await bundleEntries({
    chatty: path.join(fixtures, "chatty-plugin.ts"),
    small: path.join(fixtures, "small-plugin.mjs"),
  });
});
afterAll(() => bundle.remove());

async function startPlugin(name: string): Promise<ChildPeer & { kernel: Connection }> {
  const peer = spawnPeer(bundle.file(name));
  const kernel = new Connection({ transport: peer.transport, side: "kernel" });
  let received = 0;
  kernel.onNotification(ToolsProgress, async (delta) => {
    received += delta.output?.[0]?.text?.length ?? 0;
    await kernel.notify(ToolsProgressAck, { invocation_id: delta.invocation_id, bytes: received });
  });
  kernel.listen();
  await kernel.request(PluginInitialize, initializeParams());
  return { ...peer, kernel };
}

test("a plugin of one tool fits in under 20 lines and is served", async () => {
  const source = await readFile(path.join(fixtures, "small-plugin.mjs"), "utf8");
  expect(source.split("\n").length).toBeLessThan(20);
  const { kernel, exited } = await startPlugin("small");
  expect(await kernel.request(ToolsCall, callParams("echo", { text: "hi" }))).toEqual({
    content: "hi",
  });
  kernel.close();
  expect(await exited).toBe(0);
});

test("[E-001] [E-026] requests that are piped in are answered, the last one without LF too", () => {
  const requests = [
    { id: 0, method: "plugin/initialize", params: initializeParams() },
    { id: 1, method: "plugin/ping", params: {} },
  ];
  const input = requests.map((frame) => JSON.stringify({ jsonrpc: "2.0", ...frame })).join("\n");
  const { status, stdout } = spawnSync(process.execPath, [bundle.file("small")], {
    input,
    encoding: "utf8",
  });
  const answers = stdout.trimEnd().split("\n");
  expect(answers.map((line) => (JSON.parse(line) as { id: number }).id)).toEqual([0, 1]);
  expect(status).toBe(0);
});

test("[E-011] what a plugin prints lands on stderr and never among the frames", async () => {
  const { kernel, badLines, stderr, exited } = await startPlugin("chatty");
  const params = callParams("echo", { text: "still fine" });
  expect(await kernel.request(ToolsCall, params)).toEqual({ content: "still fine" });
  kernel.close();
  await exited;
  expect(stderr()).toContain("printed by a call\nwritten by a call\n");
  expect(badLines.map((bad) => bad.head)).toEqual(["printed while loading"]);
});

test.for(["plugin/shutdown", "the end of its input"])(
  "[E-026] a plugin leaves after %s: calls aborted, stop run, exit code 0",
  async (way) => {
    const { kernel, stderr, exited } = await startPlugin("chatty");
    const call = codeOf(kernel.request(ToolsCall, callParams("hang", {})));
    if (way === "plugin/shutdown") await kernel.notify(PluginShutdown, {});
    else kernel.close();
    expect(await exited).toBe(0);
    expect(stderr().endsWith("aborted\nstopped\n")).toBe(true);
    kernel.close();
    await call;
  },
);

test("a killed process settles what was pending with plugin_crashed", async () => {
  const { kernel, child, exited } = await startPlugin("chatty");
  const calls = [1, 2, 3].map((n) =>
    codeOf(
      kernel.request(
        ToolsCall,
        callParams("hang", {}, { invocation_id: `${ID.slice(0, -1)}${n}` }),
        n === 3 ? { timeoutMs: 60_000, cancelGraceMs: 60_000 } : {},
      ),
    ),
  );
  child.kill("SIGKILL");
  expect(await exited).toBe("SIGKILL");
  expect(await Promise.all(calls)).toEqual(["plugin_crashed", "plugin_crashed", "plugin_crashed"]);
});

test("[E-011] [E-103] output beyond what a pipe holds blocks nothing and arrives whole", async () => {
  const bytes = 8 * 1024 * 1024;
  const peer = spawnPeer(bundle.file("chatty"));
  const kernel = new Connection({ transport: peer.transport, side: "kernel" });
  let received = 0;
  kernel.onNotification(ToolsProgress, async (delta) => {
    received += delta.output?.[0]?.text?.length ?? 0;
    await kernel.notify(ToolsProgressAck, { invocation_id: delta.invocation_id, bytes: received });
  });
  kernel.listen();
  await kernel.request(PluginInitialize, initializeParams());
  const flood = kernel.request(ToolsCall, callParams("flood", { bytes }));
  const neighbour = callParams("echo", { text: "x" }, { invocation_id: `${ID.slice(0, -1)}2` });
  expect(await kernel.request(ToolsCall, neighbour)).toEqual({ content: "x" });
  expect(received).toBeLessThan(bytes);
  expect(await flood).toEqual({ streamed: true });
  expect(received).toBe(bytes);
  kernel.close();
  await peer.exited;
});

test("[E-038] the argument manifest writes the manifest of what is served", async () => {
  await promisify(execFile)(process.execPath, [bundle.file("chatty"), "manifest"]);
  const text = await readFile(path.join(bundle.directory, "cookie-plugin.json"), "utf8");
  const manifest = JSON.parse(text) as Manifest;
  expect(text).toBe(`${JSON.stringify(manifest, null, 2)}\n`);
  expect(manifest).toMatchObject({
    manifest: 1,
    name: "chatty",
    runtime: { kind: "node", entry: "dist/chatty.js", group: "demo" },
  });
  const peer = spawnPeer(bundle.file("chatty"));
  const kernel = new Connection({ transport: peer.transport, side: "kernel" });
  kernel.listen();
  const served = await kernel.request(PluginInitialize, initializeParams());
  expect(served.tools).toEqual(manifest.tools);
  expect(served.capabilities).toEqual(manifest.capabilities);
  kernel.close();
  await peer.exited;
});
