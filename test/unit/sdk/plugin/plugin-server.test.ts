import {
  definePlugin,
  defineTool,
  type PluginContext,
  type ToolDefinition,
  ToolError,
  type ToolInvocation,
} from "@cookie-agent/sdk/plugin";
import {
  ArtifactsRead,
  HostLog,
  PluginInitialize,
  PluginPing,
  ToolsCall,
  ToolsDiscard,
  ToolsPrepare,
  ToolsRevalidate,
  ToolsStdin,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { codeOf } from "../support/failure-of.ts";
import { callParams, ID, initializeParams, prepareParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const anything = { type: "object" };

function pluginOf(tools: Record<string, ToolDefinition>) {
  return definePlugin({ name: "echo", version: "1.0.0", tools });
}

function toolOf(call: ToolDefinition["call"], over: Partial<ToolDefinition> = {}): ToolDefinition {
  return { description: "d", parameters: anything, permissionName: "t", call, ...over };
}

describe("handshake", () => {
  test("[E-022] requests before plugin/initialize get not_initialized", async () => {
    const plugin = pluginOf({ t: toolOf(() => ({ content: "" })) });
    const { kernel, stop } = await serveInMemory(plugin, { initialize: false });
    expect(await codeOf(kernel.request(ToolsCall, callParams("t", {})))).toBe("not_initialized");
    await stop();
  });

  test("[E-021] another protocol version fails with what was expected and found", async () => {
    const { kernel, stop } = await serveInMemory(pluginOf({}), { initialize: false });
    const params = initializeParams({ protocol_version: "0.2.0" });
    await expect(kernel.request(PluginInitialize, params)).rejects.toMatchObject({
      code: "version_mismatch",
      data: { expected: "0.1.0", found: "0.2.0" },
    });
    await stop();
  });

  test("[E-022] [E-023] start gets the kernel's facts and may log before the answer", async () => {
    let seen: PluginContext | undefined;
    const plugin = definePlugin({
      name: "echo",
      version: "1.0.0",
      tools: {},
      start: (context) => {
        seen = context;
        context.log("info", "starting", { step: 1 });
      },
    });
    const { kernel, stop } = await serveInMemory(plugin, { initialize: false });
    const logs: unknown[] = [];
    kernel.onNotification(HostLog, (entry) => {
      logs.push(entry);
    });
    await kernel.request(PluginInitialize, initializeParams({ config: { shell: "/bin/sh" } }));
    expect(logs).toEqual([{ level: "info", message: "starting", fields: { step: 1 } }]);
    expect(seen).toMatchObject({
      config: { shell: "/bin/sh" },
      paths: { workspace: "/w", data: "/d", scratch: "/s" },
      tier: "trusted",
      engineVersion: "2.3.0",
      services: [],
    });
    await stop();
  });

  test("an error of start fails the handshake with its message", async () => {
    const plugin = definePlugin({
      name: "echo",
      version: "1.0.0",
      tools: {},
      start: () => {
        throw new Error("no shell");
      },
    });
    const { kernel, stop } = await serveInMemory(plugin, { initialize: false });
    await expect(kernel.request(PluginInitialize, initializeParams())).rejects.toMatchObject({
      code: "execution_failed",
      message: "no shell",
    });
    await stop();
  });

  test("[E-026] ping is answered while a call runs, and shutdown stops the plugin once", async () => {
    let stops = 0;
    const plugin = definePlugin({
      name: "echo",
      version: "1.0.0",
      tools: {
        t: toolOf(async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return { content: "" };
        }),
      },
      stop: () => {
        stops += 1;
      },
    });
    const { kernel, stop } = await serveInMemory(plugin);
    const call = codeOf(kernel.request(ToolsCall, callParams("t", {})));
    expect(await kernel.request(PluginPing, {})).toEqual({});
    await stop();
    expect(await call).toBe("no error");
    expect(stops).toBe(1);
  });
});

describe("calls", () => {
  test("[E-090] an invocation carries identity, place and limits", async () => {
    let seen: ToolInvocation | undefined;
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf((invocation) => {
          seen = invocation;
          return { content: "done" };
        }),
      }),
    );
    const params = callParams("t", { text: "x" }, { resource: "x" });
    expect(await kernel.request(ToolsCall, params)).toEqual({ content: "done" });
    expect(seen).toMatchObject({
      args: { text: "x" },
      tool: "t",
      sessionId: ID,
      runId: ID,
      invocationId: ID,
      cwd: "/w",
      workspaceRoot: "/w",
      resource: "x",
      state: undefined,
      stdin: null,
      limits: { maxLines: 2000, maxBytes: 51200 },
    });
    await stop();
  });

  test("zod parameters are parsed, with defaults filled in", async () => {
    const greet = defineTool({
      description: "d",
      parameters: z.object({ name: z.string(), mark: z.string().default("!") }),
      permissionName: "greet",
      call: ({ args }) => ({ content: `${args.name}${args.mark}` }),
    });
    const { kernel, stop } = await serveInMemory(pluginOf({ greet }));
    const answer = await kernel.request(ToolsCall, callParams("greet", { name: "Ada" }));
    expect(answer).toEqual({ content: "Ada!" });
    const bad = kernel.request(ToolsCall, callParams("greet", { name: 1 }));
    await expect(bad).rejects.toMatchObject({ code: "invalid_arguments", data: { field: "name" } });
    await stop();
  });

  test("[E-092] every form of answer reaches the wire", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        content: toolOf(() => ({
          content: "c",
          isError: true,
          failed: true,
          title: "t",
          display: "d",
          metadata: { status: 1 },
          attachments: [{ scratch: "plot.png", mime: "image/png" }],
        })),
        outputs: toolOf(() => ({ outputs: [{ stream: "stdout", text: "o" }] })),
        streamed: toolOf(async ({ progress }) => {
          await progress({ output: "s" });
          return { streamed: true };
        }),
      }),
    );
    expect(await kernel.request(ToolsCall, callParams("content", {}))).toEqual({
      content: "c",
      is_error: true,
      failed: true,
      title: "t",
      display: "d",
      metadata: { status: 1 },
      attachments: [{ scratch: "plot.png", mime: "image/png" }],
    });
    expect(await kernel.request(ToolsCall, callParams("outputs", {}))).toEqual({
      outputs: [{ stream: "stdout", text: "o" }],
    });
    expect(await kernel.request(ToolsCall, callParams("streamed", {}))).toEqual({ streamed: true });
    await stop();
  });

  test("[E-093] text after streamed text is a protocol violation", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async (invocation) => {
          await invocation.progress({ output: "streamed" });
          return { content: "again" };
        }),
      }),
    );
    expect(await codeOf(kernel.request(ToolsCall, callParams("t", {})))).toBe("protocol_violation");
    expect(progress).toHaveLength(1);
    await stop();
  });

  test.for([
    ["an ordinary error", new Error("exit 3\nno file"), "execution_failed", "exit 3\nno file"],
    ["a tool error", new ToolError("timeout", "slow"), "timeout", "slow"],
    ["a code of its own", new ToolError("quota", "none left"), "quota", "none left"],
    ["a thrown string", "odd", "execution_failed", "odd"],
  ] as const)("%s of a tool arrives with code and message", async ([, thrown, code, message]) => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(() => Promise.reject(thrown as Error)),
      }),
    );
    const call = kernel.request(ToolsCall, callParams("t", {}));
    await expect(call).rejects.toMatchObject({ code, message });
    await stop();
  });

  test.for(["toString", "missing"])("a tool %s that was not declared is refused", async (name) => {
    const { kernel, stop } = await serveInMemory(pluginOf({}));
    expect(await codeOf(kernel.request(ToolsCall, callParams(name, {})))).toBe("invalid_params");
    await stop();
  });

  test("[E-105] a cancelled call can clean up and stream, and answers with cancelled", async () => {
    const controller = new AbortController();
    const { kernel, progress, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async (invocation) => {
          await invocation.progress({ output: "begun" });
          await new Promise((resolve) => invocation.signal.addEventListener("abort", resolve));
          await invocation.progress({ output: "terminated" });
          throw new Error("stopped");
        }),
      }),
    );
    const call = kernel.request(ToolsCall, callParams("t", {}), {
      signal: controller.signal,
      cancelGraceMs: 60_000,
    });
    await expect.poll(() => progress.length).toBe(1);
    controller.abort();
    expect(await codeOf(call)).toBe("cancelled");
    expect(progress.map((delta) => delta.output?.[0]?.text)).toEqual(["begun", "terminated"]);
    await stop();
  });

  test("[E-096] calls of one plugin overlap", async () => {
    let arrived = 0;
    let open = () => {};
    const both = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async () => {
          arrived += 1;
          if (arrived === 2) open();
          await both;
          return { content: "" };
        }),
      }),
    );
    const other = { invocation_id: "0198c0de-0000-7000-8000-000000000002" };
    await Promise.all([
      kernel.request(ToolsCall, callParams("t", {})),
      kernel.request(ToolsCall, callParams("t", {}, other)),
    ]);
    await stop();
  });

  test("[E-118] artifacts are read under the context of the call", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async ({ host }) => {
          const page = await host.readArtifact({ uri: "artifact://x", offset: 2 });
          return { content: page.text };
        }),
      }),
    );
    let seen: unknown;
    kernel.onRequest(ArtifactsRead, (params) => {
      seen = params;
      return {
        text: "page",
        next_offset: null,
        next_byte: null,
        total_lines: 1,
        total_bytes: 4,
        source: "artifact",
      };
    });
    const params = callParams("t", {}, { context_id: "c-7" });
    expect(await kernel.request(ToolsCall, params)).toEqual({ content: "page" });
    expect(seen).toEqual({ context_id: "c-7", uri: "artifact://x", offset: 2 });
    await stop();
  });
});

describe("preparation", () => {
  function preparing(released: string[] = []) {
    const edit = defineTool({
      description: "d",
      parameters: z.object({ path: z.string() }),
      permissionName: "edit",
      prepare: {
        mode: "dynamic",
        actions: ["write"],
        run: ({ args }) => ({
          resources: [{ action: "write", label: args.path }],
          serialize: [`path:${args.path}`],
          state: { path: args.path },
          release: () => {
            released.push(args.path);
          },
          primaryArgument: args.path,
        }),
      },
      revalidate: (state) => {
        if (state?.path === "gone") throw new Error("the file has changed");
      },
      call: ({ state }) => ({ content: `wrote ${state?.path}` }),
    });
    return serveInMemory(pluginOf({ edit, other: { ...edit } }));
  }

  test("[E-082] [E-091] a prepared state reaches one call and no second one", async () => {
    const { kernel, stop } = await preparing();
    const { prepared, ...answer } = await kernel.request(
      ToolsPrepare,
      prepareParams("edit", { path: "a" }),
    );
    expect(answer).toEqual({
      resources: [{ action: "write", label: "a" }],
      serialize: ["path:a"],
      primary_argument: "a",
    });
    const params = callParams("edit", { path: "a" }, { prepared });
    expect(await kernel.request(ToolsCall, params)).toEqual({ content: "wrote a" });
    expect(await codeOf(kernel.request(ToolsCall, params))).toBe("prepared_capability_lost");
    await stop();
  });

  test("[E-091] a token of another tool or of nobody is lost", async () => {
    const { kernel, stop } = await preparing();
    const params = prepareParams("edit", { path: "a" });
    const { prepared } = await kernel.request(ToolsPrepare, params);
    for (const over of [{ tool: "other", prepared }, { prepared: "forged" }]) {
      const call = kernel.request(ToolsCall, callParams("edit", { path: "a" }, over));
      expect(await codeOf(call)).toBe("prepared_capability_lost");
    }
    await stop();
  });

  test("[E-084] a discarded token frees its state, and so does the end of the plugin", async () => {
    const released: string[] = [];
    const { kernel, stop } = await preparing(released);
    const prepare = (path: string) => kernel.request(ToolsPrepare, prepareParams("edit", { path }));
    const first = await prepare("first");
    await prepare("second");
    await kernel.notify(ToolsDiscard, { prepared: [first.prepared ?? ""] });
    await kernel.request(PluginPing, {});
    expect(released).toEqual(["first"]);
    const call = callParams("edit", { path: "first" }, { prepared: first.prepared });
    expect(await codeOf(kernel.request(ToolsCall, call))).toBe("prepared_capability_lost");
    await stop();
    expect(released).toEqual(["first", "second"]);
  });

  test("[E-088] revalidation keeps the token and reports a change", async () => {
    const { kernel, stop } = await preparing();
    for (const [path, outcome] of [
      ["a", "no error"],
      ["gone", "operation_changed"],
    ] as const) {
      const answer = await kernel.request(ToolsPrepare, prepareParams("edit", { path }));
      const prepared = answer.prepared ?? "";
      const params = { invocation_id: ID as never, prepared };
      expect(await codeOf(kernel.request(ToolsRevalidate, params))).toBe(outcome);
      const call = callParams("edit", { path }, { prepared });
      expect(await kernel.request(ToolsCall, call)).toEqual({ content: `wrote ${path}` });
    }
    await stop();
  });

  test("an error of prepare is prepare_failed with its message", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(() => ({ content: "" }), {
          prepare: {
            mode: "dynamic",
            actions: ["read"],
            run: () => Promise.reject(new Error("no such file")),
          },
        }),
      }),
    );
    const preparing = kernel.request(ToolsPrepare, prepareParams("t", {}));
    await expect(preparing).rejects.toMatchObject({
      code: "prepare_failed",
      message: "no such file",
    });
    await stop();
  });
});

describe("standard input", () => {
  const cat = toolOf(async ({ stdin }) => {
    if (stdin === null) return { content: "no stdin" };
    const chunks: Uint8Array[] = [];
    for await (const chunk of stdin) chunks.push(chunk);
    return { content: Buffer.concat(chunks).toString("utf8") };
  });
  const write = (text: string, eof = false) => ({
    invocation_id: ID as never,
    data: Buffer.from(text).toString("base64"),
    eof,
  });

  test("[E-106] writes reach the tool in order, and none is accepted after eof", async () => {
    const { kernel, stop } = await serveInMemory(pluginOf({ cat }));
    const call = kernel.request(ToolsCall, callParams("cat", {}, { stdin: true }));
    const answers = await Promise.all([
      kernel.request(ToolsStdin, write("one ")),
      kernel.request(ToolsStdin, write("two", true)),
      kernel.request(ToolsStdin, write("three")),
    ]);
    expect(answers).toEqual([{ accepted: true }, { accepted: true }, { accepted: false }]);
    expect(await call).toEqual({ content: "one two" });
    expect(await kernel.request(ToolsStdin, write("late"))).toEqual({ accepted: false });
    await stop();
  });

  test("[E-106] a call that did not ask for input accepts none", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async ({ stdin, signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return { content: String(stdin) };
        }),
      }),
    );
    const controller = new AbortController();
    const call = codeOf(
      kernel.request(ToolsCall, callParams("t", {}), { signal: controller.signal }),
    );
    expect(await kernel.request(ToolsStdin, write("x"))).toEqual({ accepted: false });
    controller.abort();
    await call;
    await stop();
  });

  test("[E-106] the 65th unread write is refused and an oversize one too", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginOf({
        t: toolOf(async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return { content: "" };
        }),
      }),
    );
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const call = codeOf(kernel.request(ToolsCall, callParams("t", {}, { stdin: true }), options));
    const oversize = kernel.request(ToolsStdin, write("x".repeat(65_537)));
    expect(await codeOf(oversize)).toBe("limit_exceeded");
    for (let i = 0; i < 64; i++) {
      expect(await kernel.request(ToolsStdin, write("x"))).toEqual({ accepted: true });
    }
    expect(await codeOf(kernel.request(ToolsStdin, write("x")))).toBe("busy");
    controller.abort();
    await call;
    await stop();
  });

  test("[E-105] [E-106] a cancel ends the input that a tool waits for", async () => {
    const { kernel, stop } = await serveInMemory(pluginOf({ cat }));
    const controller = new AbortController();
    const call = kernel.request(ToolsCall, callParams("cat", {}, { stdin: true }), {
      signal: controller.signal,
      cancelGraceMs: 60_000,
    });
    await kernel.request(ToolsStdin, write("x"));
    controller.abort();
    expect(await call).toEqual({ content: "x" });
    await stop();
  });
});
