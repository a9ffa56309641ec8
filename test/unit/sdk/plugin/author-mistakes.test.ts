import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  createManifest,
  definePlugin,
  type Plugin,
  type ToolDefinition,
} from "@cookie-agent/sdk/plugin";
import { ToolsCall, ToolsPrepare } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { callParams, prepareParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

/** A plugin as an author without a type checker may write it. */
function pluginOf(tool: Record<string, unknown>): Plugin {
  const whole = {
    description: "d",
    parameters: { type: "object" },
    permissionName: "t",
    call: () => ({ content: "" }),
    ...tool,
  };
  return definePlugin({
    name: "echo",
    version: "1.0.0",
    tools: { t: whole as unknown as ToolDefinition },
  });
}

describe("a call that answers wrongly", () => {
  test.for<[string, unknown, RegExp]>([
    ["nothing", undefined, /tool t answered undefined; answer \{content: text\}/],
    ["null", null, /answered null/],
    ["text", "hello", /answered a string/],
    ["a list", [{ type: "text" }], /answered an array/],
    ["an empty object", {}, /none of these/],
    ["another member", { text: "hello" }, /unknown member text/],
    ["two kinds", { content: "a", streamed: true }, /more than one of these/],
    ["a number", { content: 5 }, /a content that is a number/],
    ["text for outputs", { outputs: "a" }, /outputs that are a string/],
    ["streamed false", { streamed: false }, /a streamed that is not true/],
  ])("[E-092] %s: the message says what and what to answer", async ([, answer, message]) => {
    const { kernel, stop } = await serveInMemory(pluginOf({ call: () => answer }));
    await expect(kernel.request(ToolsCall, callParams("t", {}))).rejects.toMatchObject({
      code: "protocol_violation",
      message: expect.stringMatching(message),
    });
    await stop();
  });

  test.for<[unknown, string]>([
    ["boom", "boom"],
    [undefined, "something that is no Error was thrown (undefined)"],
    [Object.create(null), "something that is no Error was thrown (object)"],
    [new TypeError(""), "TypeError"],
  ])("[E-092] %o thrown becomes a failure with words", async ([thrown, message]) => {
    const call = () => Promise.reject(thrown as Error);
    const { kernel, stop } = await serveInMemory(pluginOf({ call }));
    await expect(kernel.request(ToolsCall, callParams("t", {}))).rejects.toMatchObject({
      code: "execution_failed",
      message,
    });
    await stop();
  });
});

test.for<[unknown, RegExp]>([
  ["text", /progress was given no object/],
  [undefined, /progress was given no object/],
  [{ text: "a" }, /unknown member text/],
  [{ output: 5 }, /neither text nor bytes nor a list/],
  [{ output: [{ stream: "a", text: 5 }] }, /neither text nor bytes nor a list/],
  [{ message: 5 }, /a message or display that is no text/],
])(
  "[E-100] progress(%j) fails the call with the reason, awaited or not",
  async ([given, message]) => {
    const call = (invocation: { progress(delta: unknown): Promise<void> }) => {
      void invocation.progress(given);
      return { content: "" };
    };
    const { kernel, stop } = await serveInMemory(pluginOf({ call }));
    await expect(kernel.request(ToolsCall, callParams("t", {}))).rejects.toMatchObject({
      code: "protocol_violation",
      message: expect.stringMatching(message),
    });
    await stop();
  },
);

test("a second serve in one process is refused with the plugin's name", async () => {
  const entry = fileURLToPath(new URL("../../../../sdk/dist/plugin/index.js", import.meta.url));
  const program = `
    import { definePlugin, serve } from ${JSON.stringify(entry)};
    const plugin = definePlugin({ name: "twice", version: "1.0.0", tools: {} });
    void serve(plugin);
    await serve(plugin).catch((error) => process.stderr.write(error.message));`;
  const running = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, COOKIE_PLUGIN_PROTOCOL: "0.1.0" },
  });
  running.child.stdin?.end();
  expect((await running).stderr).toContain("plugin twice: serve was called twice");
});

test.for([undefined, {}, { resources: "a" }])(
  "[E-082] a preparation that returns %j is told what to return",
  async (prepared) => {
    const prepare = { mode: "dynamic", actions: ["read"], run: () => prepared };
    const { kernel, stop } = await serveInMemory(pluginOf({ prepare }));
    await expect(kernel.request(ToolsPrepare, prepareParams("t", {}))).rejects.toMatchObject({
      code: "prepare_failed",
      message: expect.stringMatching(/tool t returned no list of resources/),
    });
    await stop();
  },
);

test.for<[Record<string, unknown>, RegExp]>([
  [{ parameters: z.object({ at: z.date() }) }, /echo: tools\.t\.parameters: Date cannot be/],
  [{ parameters: z.string() }, /tools\.t\.parameters: the zod schema is not a z\.object/],
  [{ parameters: undefined }, /tools\.t\.parameters: expected a zod object or a JSON Schema/],
  [{ call: undefined }, /tools\.t: expected a tool with `call`/],
  [{ permissionName: "A b" }, /tools\.t\.permission_name: /],
])("[E-038] a wrong declaration %o is refused by the tool's name", ([tool, message]) => {
  const write = () => createManifest(pluginOf(tool), { kind: "node", entry: "x.js" });
  expect(write).toThrow(expect.objectContaining({ code: "invalid_declaration" }));
  expect(write).toThrow(message);
});
