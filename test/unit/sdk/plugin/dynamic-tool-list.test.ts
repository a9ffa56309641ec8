import { setImmediate } from "node:timers/promises";
import { definePlugin, defineTool, type PluginContext } from "@cookie-agent/sdk/plugin";
import {
  CookieError,
  HostLog,
  type ParamsOf,
  PluginInitialize,
  ToolsCall,
  ToolsListChanged,
  ToolsResolve,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createGate } from "../../../support/gate.ts";
import { codeOf } from "../support/failure-of.ts";
import { callParams, initializeParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const say = (content: string) =>
  defineTool({
    description: `Says ${content}.`,
    parameters: z.object({ loud: z.boolean().default(false) }),
    permissionName: "say",
    call: ({ args }) => ({ content: args.loud ? content.toUpperCase() : content }),
  });

/** A plugin in memory that hands its context out, and a kernel that answers its lists. */
async function open(
  answer: (list: ParamsOf<typeof ToolsListChanged>) => unknown = ({ tools }) => ({
    revision: 1,
    accepted: tools.map((tool) => (tool as { name: string }).name),
    shadowed: [],
    rejected: [],
  }),
  start: (context: PluginContext) => void | Promise<void> = () => undefined,
) {
  const lists: ParamsOf<typeof ToolsListChanged>[] = [];
  const logs: string[] = [];
  let context: PluginContext | undefined;
  const plugin = definePlugin({
    name: "lister",
    version: "1.0.0",
    tools: { fixed: say("fixed") },
    capabilities: { dynamic_tools: true },
    resolveTool: (name) => (name === "lazy_one" ? say("lazy") : null),
    start: (given) => {
      context = given;
      return start(given);
    },
  });
  const opened = await serveInMemory(plugin, { initialize: false });
  const next = createGate();
  opened.kernel.onRequest(ToolsListChanged, async (list) => {
    lists.push(list);
    next.open();
    return (await answer(list)) as never;
  });
  opened.kernel.onNotification(HostLog, ({ level, message }) => {
    logs.push(`${level}: ${message}`);
  });
  const introduction = await opened.kernel.request(PluginInitialize, initializeParams());
  const call = async (tool: string, args = {}) =>
    (await opened.kernel.request(ToolsCall, callParams(tool, args))).content;
  if (context === undefined) throw new Error("the plugin was not started");
  return { ...opened, lists, logs, context, introduction, call, listed: next.opened };
}

describe("setTools", () => {
  test("[E-130] it sends the complete list with its claims and serves the tools", async () => {
    const { context, lists, call, stop } = await open();
    const outcome = await context.setTools({ one: say("one") }, { claims: ["lazy_*"] });
    expect(outcome).toEqual({ revision: 1, accepted: ["one"], shadowed: [], rejected: [] });
    expect(lists).toEqual([
      {
        tools: [
          {
            name: "one",
            description: "Says one.",
            permission_name: "say",
            parameters: {
              type: "object",
              properties: { loud: { type: "boolean", default: false } },
              additionalProperties: false,
            },
          },
        ],
        claims: ["lazy_*"],
      },
    ]);
    expect([await call("one", { loud: true }), await call("fixed")]).toEqual(["ONE", "fixed"]);
    await stop();
  });

  test("[E-131] the list before is served until the kernel has answered, then only the new one", async () => {
    const gate = createGate();
    let lists = 0;
    const { context, call, listed, stop } = await open(async () => {
      lists += 1;
      if (lists > 1) await gate.opened;
      return { revision: lists, accepted: [], shadowed: [], rejected: [] };
    });
    await context.setTools({ old: say("old") });
    const replaced = context.setTools({ fresh: say("fresh") });
    await listed;
    expect([await call("old"), await call("fresh")]).toEqual(["old", "fresh"]);
    gate.open();
    await replaced;
    expect(await codeOf(call("old"))).toBe("invalid_params");
    expect(await call("fresh")).toBe("fresh");
    await stop();
  });

  test("[E-022] during start it is kept until the plugin has been introduced", async () => {
    let outcome: unknown;
    const { lists, listed, call, stop } = await open(undefined, async ({ setTools }) => {
      outcome = await setTools({ early: say("early") });
    });
    expect(outcome).toBeNull();
    await listed;
    expect(lists).toHaveLength(1);
    expect(await call("early")).toBe("early");
    await stop();
  });

  test("a refusal keeps the list before, and is said in the log when nobody waits for it", async () => {
    const refuse = () => {
      throw new CookieError("not_granted", "no dynamic tools");
    };
    const waiting = await open(refuse);
    expect(await codeOf(waiting.context.setTools({ one: say("one") }))).toBe("not_granted");
    expect(await codeOf(waiting.call("one"))).toBe("invalid_params");
    await waiting.stop();
    const silent = await open(refuse, async ({ setTools }) => {
      await setTools({ one: say("one") });
    });
    while (silent.logs.length === 0) await setImmediate();
    expect(silent.logs).toEqual([
      "error: the list of tools was not taken: not_granted: no dynamic tools",
    ]);
    await silent.stop();
  });

  test("a tool that the kernel refused is named in the log", async () => {
    const rejected = [{ tool: "one", code: "invalid_declaration", message: "too long" }];
    const { context, logs, call, stop } = await open(() => ({
      revision: 1,
      accepted: [],
      shadowed: [],
      rejected,
    }));
    expect(await context.setTools({ one: say("one") })).toMatchObject({ rejected });
    await call("fixed");
    expect(logs).toEqual(["warn: the tool one was refused: too long"]);
    await stop();
  });
});

describe("resolveTool", () => {
  test("[E-133] it gives the declaration of a claimed name, and the tool can be called", async () => {
    const { kernel, call, stop } = await open();
    const resolved = await kernel.request(ToolsResolve, { name: "lazy_one" });
    expect(resolved.tool).toMatchObject({ name: "lazy_one", description: "Says lazy." });
    expect(await call("lazy_one")).toBe("lazy");
    expect(await kernel.request(ToolsResolve, { name: "lazy_two" })).toEqual({ tool: null });
    expect(await codeOf(call("lazy_two"))).toBe("invalid_params");
    await stop();
  });
});
