import { existsSync } from "node:fs";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { definePlugin, defineTool, ToolError } from "@cookie-agent/sdk/plugin";
import { type HarnessOptions, testPlugin } from "@cookie-agent/sdk/testing";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";

const plugin = definePlugin({
  name: "sample",
  version: "1.0.0",
  capabilities: { host: ["artifacts.write", "media"] },
  start: ({ log, config }) => log("info", `started with ${JSON.stringify(config)}`),
  tools: {
    stream: defineTool({
      description: "Streams.",
      parameters: z.strictObject({}),
      permissionName: "sample",
      output: { mode: "named", streams: ["out", "err"] },
      async call({ progress }) {
        await progress({ output: [{ stream: "out", text: "one " }], message: "half" });
        await progress({ output: [{ stream: "out", bytes: Buffer.from("twö") }] });
        await progress({ output: [{ stream: "err", text: "bad" }] });
        return { streamed: true, metadata: { parts: 3 } };
      },
    }),
    wait: defineTool({
      description: "Waits.",
      parameters: z.strictObject({}),
      permissionName: "sample",
      async call({ progress, signal }) {
        await progress({ output: "waiting" });
        while (true) await pause(1, undefined, { signal });
      },
    }),
    shout: defineTool({
      description: "Reads.",
      parameters: z.strictObject({ interactive: z.boolean() }),
      permissionName: "sample",
      stdinArgument: "interactive",
      async call({ stdin }) {
        let text = "";
        for await (const bytes of stdin ?? []) text += Buffer.from(bytes).toString("utf8");
        return { content: text.toUpperCase() };
      },
    }),
    keep: defineTool<z.ZodObject, string>({
      description: "Keeps.",
      parameters: z.strictObject({}),
      permissionName: "sample",
      prepare: {
        mode: "dynamic",
        actions: ["plugin"],
        run: ({ cwd }) => ({
          resources: [{ action: "plugin", label: "sample kept" }],
          state: existsSync(join(cwd, "there")) ? "there" : "not there",
        }),
      },
      async call({ host, state }) {
        const { uri } = await host.writeArtifact({ text: state ?? "" });
        return { content: uri };
      },
    }),
    refuse: defineTool({
      description: "Refuses.",
      parameters: z.strictObject({}),
      permissionName: "sample",
      call: () => Promise.reject(new ToolError("busy", "not now")),
    }),
  },
});

async function open(options: HarnessOptions = {}) {
  const harness = await testPlugin(plugin, options);
  onTestFinished(() => harness.close());
  return harness;
}

test("output by stream, news and answer come back as they went over the wire", async () => {
  const harness = await open({ config: { a: 1 } });
  const pieces: string[] = [];
  const result = await harness.call(
    "stream",
    {},
    { onOutput: (text, stream) => pieces.push(`${stream}:${text}`) },
  );
  expect(result).toEqual({
    answer: { streamed: true, metadata: { parts: 3 } },
    error: null,
    text: "",
    streams: { out: "one twö", err: "bad" },
    progress: [{ message: "half" }],
    problems: [],
  });
  expect(pieces).toEqual(["out:one ", "out:twö", "err:bad"]);
  expect(harness.logs).toEqual(['started with {"a":1}']);
  expect(harness.tools.map(({ name }) => name)).toContain("keep");
});

test("without raw output the same bytes come as text", async () => {
  const harness = await open({ raw: false });
  const { streams, problems } = await harness.call("stream", {});
  expect({ streams, problems }).toEqual({ streams: { out: "one twö", err: "bad" }, problems: [] });
});

test("[E-105] a signal cancels; what was printed is kept", async () => {
  const harness = await open();
  const stop = new AbortController();
  const { error, text } = await harness.call(
    "wait",
    {},
    { signal: stop.signal, onOutput: () => stop.abort() },
  );
  expect({ code: error?.code, text }).toEqual({ code: "cancelled", text: "waiting" });
});

test("[E-106] stdin is typed to its end, at once or bit by bit", async () => {
  const harness = await open();
  const args = { interactive: true };
  expect(await harness.call("shout", args, { stdin: "hello" })).toMatchObject({ text: "HELLO" });
  async function* typed() {
    yield "a";
    yield "b";
  }
  expect(await harness.call("shout", args, { stdin: typed() })).toMatchObject({ text: "AB" });
});

test("a tool that prepares is prepared, and artifacts go to memory or to the author's own fake", async () => {
  const harness = await open();
  await writeFile(join(harness.workspace, "there"), "");
  const { text } = await harness.call("keep", {});
  expect(text).toMatch(/^artifact:\/\/[0-9a-f:]*\w{64}$/);
  expect(await harness.prepare("keep", {})).toMatchObject({
    resources: [{ action: "plugin", label: "sample kept" }],
  });
  const own = await open({
    services: {
      "host/artifacts/write": () => {
        throw new ToolError("storage_failed", "full");
      },
    },
  });
  expect((await own.call("keep", {})).error).toMatchObject({ code: "storage_failed" });
});

test("the fakes take scratch files and give byte ranges, and refuse what the kernel would refuse", async () => {
  let scratch = "";
  const bytes = Buffer.from([0xff, 0, 1, 2, 3]);
  const files = definePlugin({
    name: "files",
    version: "1.0.0",
    capabilities: { host: ["artifacts.write", "artifacts.read"] },
    start: ({ paths }) => {
      scratch = paths.scratch;
    },
    tools: {
      store: defineTool({
        description: "Stores.",
        parameters: z.strictObject({ name: z.string() }),
        permissionName: "store",
        async call({ args, host }) {
          const { uri, bytes: stored } = await host.writeArtifactFile(args.name);
          const range = { uri, byteOffset: 1, byteLimit: 3 };
          const { bytes: read, ...rest } = await host.readArtifactBytes(range);
          return { content: JSON.stringify({ stored, read: [...read], ...rest }) };
        },
      }),
    },
  });
  const harness = await testPlugin(files);
  onTestFinished(() => harness.close());
  await writeFile(join(scratch, "some"), bytes);
  await symlink(join(scratch, "some"), join(scratch, "link"));
  const { text, error } = await harness.call("store", { name: "some" });
  expect(error).toBeNull();
  expect(JSON.parse(text)).toEqual({ stored: 5, read: [0, 1, 2], nextByte: 4, totalBytes: 5 });
  const codeOf = async (name: string) => (await harness.call("store", { name })).error?.code;
  expect(await codeOf("link")).toBe("unsupported_security");
  expect(await codeOf("missing")).toBe("execution_failed");
  expect(await codeOf("../data")).toBe("invalid_params");
});

test("an error keeps its code, and a wrong tool or argument is told", async () => {
  const harness = await open();
  expect((await harness.call("refuse", {})).error).toMatchObject({
    code: "busy",
    message: "not now",
  });
  expect((await harness.call("stream", { no: 1 })).error?.code).toBe("invalid_arguments");
  await expect(harness.call("nothing", {})).rejects.toThrow("it has stream, wait");
});

test("a plugin that does not start rejects, and closing removes its folders", async () => {
  const broken = definePlugin({
    name: "broken",
    version: "1.0.0",
    tools: {},
    start: () => Promise.reject(new Error("no key")),
  });
  await expect(testPlugin(broken)).rejects.toThrow("no key");
  const harness = await testPlugin(plugin);
  await harness.close();
  expect(existsSync(harness.workspace)).toBe(false);
});
