import { PluginPing, ToolsDiscard } from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import { expect, test } from "vitest";
import { openRawPeer } from "../support/raw-peer.ts";

function servePing(transport: ConstructorParameters<typeof Connection>[0]["transport"]) {
  const connection = new Connection({ transport, side: "plugin" });
  connection.onRequest(PluginPing, () => ({}));
  return connection;
}

test("[E-014] every channel has its own connection with its own ids", async () => {
  const peer = openRawPeer();
  for (const name of ["a", "b"]) servePing(peer.transport.channel(name)).listen();
  const ping = { jsonrpc: "2.0", id: 0, method: "plugin/ping" };
  peer.send({ ch: "b", ...ping }, { ch: "a", ...ping });
  expect([await peer.next(), await peer.next()]).toEqual([
    { ch: "b", jsonrpc: "2.0", id: 0, result: {} },
    { ch: "a", jsonrpc: "2.0", id: 0, result: {} },
  ]);
});

test("[E-014] a frame without ch, or for a channel that never was, is a bad line", async () => {
  const peer = openRawPeer();
  servePing(peer.transport.channel("a")).listen();
  const ping = { jsonrpc: "2.0", id: 1, method: "plugin/ping" };
  peer.send(ping, { ch: "nobody", ...ping }, { ch: "a", ...ping });
  expect(await peer.next()).toMatchObject({ ch: "a", id: 1 });
  expect(peer.badLines.map((bad) => bad.reason)).toEqual([
    "frame without ch",
    "frame for an unknown channel",
  ]);
});

test("[E-014] closing one channel leaves the others and drops its late frames", async () => {
  const peer = openRawPeer();
  const first = servePing(peer.transport.channel("a"));
  first.listen();
  servePing(peer.transport.channel("b")).listen();
  first.close();
  const ping = { jsonrpc: "2.0", id: 1, method: "plugin/ping" };
  peer.send({ ch: "a", ...ping }, { ch: "b", ...ping });
  expect(await peer.next()).toMatchObject({ ch: "b" });
  expect(peer.badLines).toEqual([]);
});

test("frames that come before a channel listens wait for it", async () => {
  const peer = openRawPeer();
  const connection = servePing(peer.transport.channel("a"));
  servePing(peer.transport.channel("b")).listen();
  const ping = { jsonrpc: "2.0", id: 3, method: "plugin/ping" };
  peer.send({ ch: "a", ...ping }, { ch: "b", ...ping });
  expect(await peer.next()).toMatchObject({ ch: "b" });
  connection.listen();
  expect(await peer.next()).toMatchObject({ ch: "a", id: 3 });
});

test("[E-012] frames of a closed channel no longer hold the pipe back", async () => {
  const peer = openRawPeer();
  const blocked = new Connection({ transport: peer.transport.channel("a"), side: "plugin" });
  blocked.onNotification(ToolsDiscard, () => new Promise(() => {}));
  blocked.listen();
  const frame = {
    ch: "a",
    jsonrpc: "2.0",
    method: "plugin/tools/discard",
    params: { prepared: [] },
  };
  peer.send(...Array.from({ length: 300 }, () => frame));
  await expect.poll(() => peer.input.isPaused()).toBe(true);
  blocked.close();
  expect(peer.input.isPaused()).toBe(false);
});

test("the end of the pipe closes every channel", async () => {
  const peer = openRawPeer();
  const connections = ["a", "b"].map((name) => servePing(peer.transport.channel(name)));
  for (const connection of connections) connection.listen();
  peer.input.end();
  await Promise.all(connections.map((connection) => connection.closed));
});
