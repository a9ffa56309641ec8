import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createManifest,
  definePlugin,
  type HostClient,
  type PluginContext,
  type PluginDefinition,
  ToolError,
} from "@cookie-agent/sdk/plugin";
import * as protocol from "@cookie-agent/sdk/protocol";
import { ServiceCall, ToolsCall } from "@cookie-agent/sdk/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { codeOf } from "../support/failure-of.ts";
import { callParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

function pluginOf(
  use: (host: HostClient) => Promise<unknown>,
  more: Partial<PluginDefinition> = {},
) {
  return definePlugin({
    name: "echo",
    version: "1.0.0",
    tools: {
      t: {
        description: "d",
        parameters: { type: "object" },
        permissionName: "t",
        call: async ({ host }) => ({ content: JSON.stringify(await use(host)) }),
      },
    },
    ...more,
  });
}

const resources = [{ action: "plugin" as const, label: "t" }];
const child = { session_id: "0198c0de-0000-7000-8000-000000000001", handle: "h" };
const goal = { goal_id: "g", objective: "o", status: "active", revision: 1, items: [] };
const skill = { name: "s", description: "d", permission_effect: "allow", visible: true };

const SERVICES: readonly {
  method: string;
  use: (host: HostClient) => Promise<unknown>;
  sent: object;
  answer: object;
  got?: unknown;
}[] = [
  {
    method: "host/artifacts/read",
    use: (host) => host.readArtifactBytes({ uri: "artifact://x", byteOffset: 1, byteLimit: 2 }),
    sent: { uri: "artifact://x", byte_offset: 1, byte_limit: 2 },
    answer: {
      data: "aGk=",
      next_offset: null,
      next_byte: 3,
      total_lines: 1,
      total_bytes: 9,
      source: "artifact",
    },
    got: { bytes: { type: "Buffer", data: [104, 105] }, nextByte: 3, totalBytes: 9 },
  },
  {
    method: "host/artifacts/write",
    use: (host) => host.writeArtifactFile("plot"),
    sent: { scratch: "plot" },
    answer: { uri: "artifact://x", sha256: "0".repeat(64), bytes: 1 },
  },
  {
    method: "host/session/info",
    use: (host) => host.sessionInfo(),
    sent: {},
    answer: {
      session_id: child.session_id,
      root_session_id: child.session_id,
      depth: 0,
      handle: null,
      agent: "primary",
      cwd: "/w",
      workspace_root: "/w",
    },
  },
  {
    method: "host/permission/ask",
    use: (host) => host.askPermission({ resources, reason: "why" }),
    sent: { resources, reason: "why" },
    answer: { granted: false, source: "user", feedback: "no" },
  },
  {
    method: "host/media/sniff",
    use: (host) => host.sniffMedia({ scratch: "plot" }),
    sent: { scratch: "plot" },
    answer: { mime: "image/png", kind: "image" },
  },
  {
    method: "host/media/deliver",
    use: (host) => host.deliverMedia({ artifact: "artifact://x", filename: "f" }),
    sent: { artifact: "artifact://x", filename: "f" },
    answer: { artifact: "artifact://x", mime: "image/png", bytes: 1, placement: "user_turn" },
  },
  {
    method: "host/delegation/start",
    use: (host) =>
      host.delegation.start({ agent: "a", description: "d", prompt: "p", background: true }),
    sent: { agent: "a", description: "d", prompt: "p", background: true },
    answer: { ...child, state: "queued", position: 1 },
  },
  {
    method: "host/delegation/result",
    use: (host) => host.delegation.result({ ref: "h", wait: true }),
    sent: { ref: "h", wait: true },
    answer: { ...child, status: "completed", text: "done", total_lines: 1 },
  },
  {
    method: "host/delegation/cancel",
    use: (host) => host.delegation.cancel({ ref: "h" }),
    sent: { ref: "h" },
    answer: { ...child, cancelled: true },
  },
  {
    method: "host/delegation/targets",
    use: (host) => host.delegation.targets(),
    sent: {},
    answer: { targets: [{ agent: "a", description: "d" }] },
    got: [{ agent: "a", description: "d" }],
  },
  {
    method: "host/messages/send",
    use: (host) => host.sendMessage({ to: "parent", body: "b", mode: "steer" }),
    sent: { to: "parent", body: "b", mode: "steer" },
    answer: { message_id: "m", mode: "steer", recipient_state: "running" },
  },
  {
    method: "host/goals/get",
    use: (host) => host.goals.get(),
    sent: {},
    answer: { goal },
    got: goal,
  },
  {
    method: "host/goals/update",
    use: (host) => host.goals.update([{ description: "d", finished: true }]),
    sent: { items: [{ description: "d", finished: true }] },
    answer: { goal },
    got: goal,
  },
  {
    method: "host/skills/list",
    use: (host) => host.skills.list(),
    sent: {},
    answer: { skills: [skill] },
    got: [skill],
  },
  {
    method: "host/skills/get",
    use: (host) => host.skills.get("s"),
    sent: { name: "s", args: "" },
    answer: { skill, rendered: "text" },
  },
  {
    method: "host/skills/commit",
    use: (host) =>
      host.skills.commit({
        name: "s",
        args: "",
        rendered_body: "text",
        source_path: "/s",
        base_dir: "/",
        supporting_files: [],
      }),
    sent: { name: "s", supporting_files: [] },
    answer: { event: "skill_loaded" },
  },
];

describe("a service of the kernel", () => {
  test.for(SERVICES)("$method is asked in the context of the call", async (service) => {
    const { kernel, stop } = await serveInMemory(pluginOf(service.use));
    const asked: unknown[] = [];
    kernel.onRequest(methodNamed(service.method), (params) => {
      asked.push(params);
      return service.answer;
    });
    const { content } = await kernel.request(ToolsCall, callParams("t", {}));
    expect(asked).toMatchObject([{ ...service.sent, context_id: "c-1" }]);
    expect(JSON.parse(content ?? "null")).toEqual(service.got ?? service.answer);
    await stop();
  });

  test("its refusal reaches the tool with its code", async () => {
    const { kernel, stop } = await serveInMemory(pluginOf((host) => host.sessionInfo()));
    kernel.onRequest(methodNamed("host/session/info"), () => {
      throw new protocol.CookieError("not_granted", "no", { data: { capability: "session.info" } });
    });
    expect(await codeOf(kernel.request(ToolsCall, callParams("t", {})))).toBe("not_granted");
    await stop();
  });
});

test("[E-110] an attachment is saved under a name of its own, for its owner alone", async () => {
  const scratch = await mkdtemp(join(tmpdir(), "cookie-scratch-"));
  onTestFinished(() => rm(scratch, { recursive: true, force: true }));
  const plugin = pluginOf(async (host) => [
    await host.attach(Buffer.from("one"), { mime: "image/png", filename: "plot.png" }),
    await host.attach(Buffer.from("two")),
  ]);
  const paths = { workspace: "/w", data: "/d", scratch };
  const { kernel, stop } = await serveInMemory(plugin, { initialize: { paths } });
  const { content } = await kernel.request(ToolsCall, callParams("t", {}));
  const [one, two] = JSON.parse(content ?? "[]") as { scratch: string }[];
  expect(one).toEqual({ scratch: one?.scratch, mime: "image/png", filename: "plot.png" });
  expect(two).toEqual({ scratch: two?.scratch });
  expect(one?.scratch).not.toBe(two?.scratch);
  const file = join(scratch, one?.scratch ?? "none");
  expect(await readFile(file, "utf8")).toBe("one");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await stop();
});

test("[E-121] a section of the kernel's configuration is read without a call", async () => {
  let context: PluginContext | undefined;
  const plugin = pluginOf(async () => context?.kernelConfig("tool_output"), {
    kernelConfig: ["tool_output"],
    start: (given) => {
      context = given;
    },
  });
  const { kernel, stop } = await serveInMemory(plugin);
  kernel.onRequest(methodNamed("host/config/get"), (params) => ({ value: params }));
  const { content } = await kernel.request(ToolsCall, callParams("t", {}));
  expect(JSON.parse(content ?? "null")).toEqual({ section: "tool_output" });
  await stop();
});

describe("a service that the plugin provides", () => {
  const services: PluginDefinition["services"] = {
    skills: {
      "skills.list": ({ params, host }) => ({ params, hasHost: host !== null }),
      "skills.get": () => {
        throw new ToolError("skill_unknown", "no such skill");
      },
    },
  };
  const plugin = pluginOf(() => Promise.resolve(null), { services });
  const call = (method: string, more: object = {}) => ({
    service: "skills",
    method,
    params: { a: 1 },
    ...more,
  });

  test("[E-122] stands in the manifest", () => {
    const runtime = { kind: "node", entry: "main.js" } as const;
    expect(createManifest(plugin, runtime).provides).toEqual(["skills"]);
    expect(
      createManifest(
        pluginOf(() => Promise.resolve(null)),
        runtime,
      ).provides,
    ).toBeUndefined();
  });

  test("[E-122] is answered by method, with a host where a session is named", async () => {
    const { kernel, stop } = await serveInMemory(plugin);
    expect(await kernel.request(ServiceCall, call("skills.list"))).toEqual({
      params: { a: 1 },
      hasHost: false,
    });
    const named = call("skills.list", { context_id: "c-1" });
    expect(await kernel.request(ServiceCall, named)).toMatchObject({ hasHost: true });
    expect(await codeOf(kernel.request(ServiceCall, call("skills.get")))).toBe("skill_unknown");
    for (const unknown of [call("toString"), { ...call("skills.list"), service: "toString" }]) {
      expect(await codeOf(kernel.request(ServiceCall, unknown))).toBe("method_not_found");
    }
    await stop();
  });
});

/** The method of the protocol that has this name. */
function methodNamed(name: string): protocol.Method {
  const method = Object.values<unknown>(protocol).find((entry) => isMethod(entry, name));
  if (method === undefined) throw new Error(`no method ${name}`);
  return method as protocol.Method;
}

function isMethod(entry: unknown, name: string): boolean {
  return typeof entry === "object" && entry !== null && "name" in entry && entry.name === name;
}
