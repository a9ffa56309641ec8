import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import {
  PluginInitialize,
  PluginPing,
  ProcessAttach,
  ProcessDetach,
  ToolsCall,
} from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { bundleEntries } from "../support/bundle-fixture.ts";
import { spawnPeer } from "../support/child-peer.ts";
import { failureOf } from "../support/failure-of.ts";
import { callParams, initializeParams } from "../support/plugin-params.ts";

const fixtures = path.join(import.meta.dirname, "../fixtures");
let bundle: Awaited<ReturnType<typeof bundleEntries>>;

beforeAll(async () => {
  bundle = await bundleEntries({
    host: path.join(import.meta.dirname, "../../../../sdk/src/host/main.ts"),
    chatty: path.join(fixtures, "chatty-plugin.ts"),
    small: path.join(fixtures, "small-plugin.mjs"),
    stray: path.join(fixtures, "stray-error-plugin.ts"),
    broken: path.join(fixtures, "broken-plugin.ts"),
    silent: path.join(fixtures, "silent-plugin.ts"),
  });
});
afterAll(() => bundle.remove());

function startHost() {
  const peer = spawnPeer(bundle.file("host"));
  onTestFinished(() => {
    peer.child.kill("SIGKILL");
  });
  const open = (name: string) => {
    const transport = peer.transport.channel(name);
    const connection = new Connection({ transport, side: "kernel" });
    connection.listen();
    return connection;
  };
  const control = open("$host");
  const attach = (plugin: string, sha256: string | null = null) =>
    control.request(ProcessAttach, { plugin, entry: bundle.file(plugin), sha256 });
  const echo = async (connection: Connection, text: string) => {
    await connection.request(PluginInitialize, initializeParams());
    const answer = await connection.request(ToolsCall, callParams("echo", { text }));
    return answer.content;
  };
  return { ...peer, open, control, attach, echo };
}

test("[E-014] plugins attached together are served on channels of their own", async () => {
  const host = startHost();
  await Promise.all([host.attach("chatty"), host.attach("small")]);
  const [chatty, small] = [host.open("chatty"), host.open("small")];
  expect(await Promise.all([host.echo(chatty, "one"), host.echo(small, "two")])).toEqual([
    "one",
    "two",
  ]);
  expect((await chatty.request(PluginPing, {})) satisfies object).toEqual({});
  expect(host.badLines).toEqual([]);
  await expect.poll(host.stderr).toContain("printed while loading");
});

test("[E-014] an entry is loaded only when it has the digest that was given", async () => {
  const host = startHost();
  expect(await failureOf(host.attach("small", "0".repeat(64)))).toMatchObject({
    code: "integrity_mismatch",
  });
  const bytes = await readFile(bundle.file("small"));
  await host.attach("small", createHash("sha256").update(bytes).digest("hex"));
  expect(await host.echo(host.open("small"), "x")).toBe("x");
});

test("[E-014] an entry that fails to load, or does not serve, leaves the others alone", async () => {
  const host = startHost();
  const attached = host.attach("small");
  expect(await failureOf(host.attach("broken"))).toMatchObject({
    code: "execution_failed",
    message: "the entry of plugin broken failed to load: missing dependency",
  });
  expect(await failureOf(host.attach("silent"))).toMatchObject({ code: "execution_failed" });
  expect(await failureOf(host.attach("small"))).toMatchObject({ code: "busy" });
  await attached;
  expect(await host.echo(host.open("small"), "x")).toBe("x");
});

test("[E-014] a stray error of one plugin does not end its neighbours", async () => {
  const host = startHost();
  await host.attach("stray");
  await host.attach("small");
  const stray = host.open("stray");
  await stray.request(PluginInitialize, initializeParams());
  await stray.request(ToolsCall, callParams("stray", {}));
  await expect.poll(host.stderr).toMatch(/stray rejection[\s\S]*stray error/);
  expect(await host.echo(host.open("small"), "x")).toBe("x");
});

test("[E-014] a detached plugin is stopped and can be attached again", async () => {
  const host = startHost();
  await host.attach("chatty");
  const first = host.open("chatty");
  expect(await host.echo(first, "x")).toBe("x");
  first.close();
  await host.control.request(ProcessDetach, { plugin: "chatty" });
  await expect.poll(host.stderr).toContain("stopped\n");
  await host.attach("chatty");
  expect(await host.echo(host.open("chatty"), "again")).toBe("again");
});

test("[E-014] the host leaves with exit code 0 when its input ends, plugins stopped first", async () => {
  const host = startHost();
  await host.attach("chatty");
  const chatty = host.open("chatty");
  await chatty.request(PluginInitialize, initializeParams());
  const hanging = chatty.request(ToolsCall, callParams("hang", {}));
  host.transport.close();
  expect(await host.exited).toBe(0);
  expect(host.stderr().endsWith("aborted\nstopped\n")).toBe(true);
  // What was asked before is answered still.
  expect(await hanging).toEqual({ content: "" });
});

test("an unknown request and bad params of the control channel are answered", async () => {
  const host = startHost();
  const bad = { ...ProcessAttach, params: ProcessDetach.params };
  expect(await failureOf(host.control.request(bad, { plugin: "x" }))).toMatchObject({
    code: "invalid_params",
  });
  const unknown = { ...ProcessDetach, name: "process/restart" };
  expect(await failureOf(host.control.request(unknown, { plugin: "x" }))).toMatchObject({
    code: "method_not_found",
  });
});
