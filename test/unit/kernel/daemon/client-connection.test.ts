import {
  CLIENT_PROTOCOL_VERSION,
  type CookieError,
  Handshake,
  PluginsStatus,
  RuntimeSnapshotGet,
  SessionList,
} from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ClientConnection } from "../../../../kernel/src/daemon/client-connection.ts";
import type { ClientServices } from "../../../../kernel/src/daemon/client-services.ts";
import { PluginBus } from "../../../../kernel/src/event/plugin-bus.ts";
import { openSessions } from "../session/session-fixture.ts";

async function connect(changes: Partial<ClientServices> = {}) {
  const { sessions, services } = await openSessions();
  const [near, far] = createMemoryPair();
  new ClientConnection(far, {
    sessions,
    outputs: services.stages.outputs,
    bus: new PluginBus(),
    usageArchive: {
      async *trees() {},
      tree: () => Promise.resolve([]),
    },
    runtimeSnapshot: () => Promise.reject(new Error("not asked for")),
    pluginStatus: () => [],
    restartPlugin: () => Promise.reject(new Error("not asked for")),
    reloadPlugin: () => Promise.reject(new Error("not asked for")),
    ...changes,
  });
  const client = new Connection({ transport: near, side: "client" });
  client.listen();
  const greet = () => client.request(Handshake, { protocol_version: CLIENT_PROTOCOL_VERSION });
  return { client, greet };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("handshake", () => {
  test("[D-022] [D-023] nothing is served before it, and it can follow and be repeated", async () => {
    const { client, greet } = await connect();
    await expect(client.request(PluginsStatus, {})).rejects.toMatchObject({
      code: "handshake_required",
      message: "handshake required",
    });
    expect(await greet()).toEqual({ protocol_version: CLIENT_PROTOCOL_VERSION });
    expect(await greet()).toEqual({ protocol_version: CLIENT_PROTOCOL_VERSION });
    expect(await client.request(PluginsStatus, {})).toEqual({ plugins: [] });
  });

  test("[D-025] a connection that stays silent is closed after ten seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { client } = await connect();
    vi.advanceTimersByTime(10_000);
    await client.closed;
  });

  test("[D-025] one that shook hands stays", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { client, greet } = await connect();
    await greet();
    vi.advanceTimersByTime(60_000);
    expect(await client.request(PluginsStatus, {})).toEqual({ plugins: [] });
  });
});

test("[D-082] the 129th request at a time is refused as busy and the others are served", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { client, greet } = await connect({
    runtimeSnapshot: async () => {
      await held;
      throw new Error("released");
    },
  });
  await greet();
  const waiting = Array.from({ length: 128 }, () =>
    client.request(RuntimeSnapshotGet, {}).catch(({ code }: CookieError) => code),
  );
  await expect(client.request(SessionList, {})).rejects.toMatchObject({ code: "busy" });
  release();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["internal"]));
  expect(await client.request(SessionList, {})).toEqual({ sessions: [], diagnostics: [] });
});
