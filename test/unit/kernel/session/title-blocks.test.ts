import type { ClientKey, RunSelection } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { bindOfflineModel } from "../../../../kernel/src/model/adaptors/offline.ts";
import type { BoundModel } from "../../../../kernel/src/model/bound-model.ts";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";
import { declareTool, pluginFacts } from "../tool/dispatch-fixture.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";

const MODEL = { model: "custom.test/scripted", variant: null };

test("[S-029] a title costs its run no block of its own, and no wait", async () => {
  const { services, disk } = await openSessions();
  const asked = createDeferred();
  const named = createDeferred();
  const offline = bindOfflineModel();
  const model: BoundModel = {
    ...offline,
    selection: MODEL,
    async *stream(request, signal) {
      if (request.isAside) {
        asked.resolve();
        await named.promise;
      } else if (request.history.length > 1) {
        // By now the start of the agent waits for the next record.
        await asked.promise;
      }
      yield* offline.stream(request, signal);
    },
  };
  const { models } = services.facts;
  const currentTool = () => plugins()[0]?.tools[0];
  const plugins = () => [pluginFacts("builtin.test", [declareTool({ name: "echo" })])];
  const sessions = new SessionRegistry({
    ...services,
    headless: false,
    stages: {
      ...services.stages,
      plugins: {
        ...services.stages.plugins,
        plugins,
        currentTool,
        call: async () => ({ content: "x" }),
      },
    },
    facts: {
      ...services.facts,
      plugins,
      models: {
        ...models,
        has: () => true,
        resolveVariant: () => MODEL,
        bind: () => Promise.resolve(model),
      },
    },
  });
  const selection = { ...OFFLINE, model: MODEL } as unknown as RunSelection;
  const actor = await sessions.create(selection);
  actor.setMode("yolo");
  const { tail } = await actor.subscribe({ cursor: 0 });
  const input = 'call echo {"value":"a"}\n---\nsay done';
  await actor.startRun({ clientRunId: "a" as ClientKey, selection, input, maxTurns: null });
  const types: string[] = [];
  for await (const item of tail ?? []) {
    if (!("payload" in item)) continue;
    types.push(item.payload.type);
    if (item.payload.type === "run_completed") named.resolve();
    if (item.payload.type === "session_title_committed") break;
  }
  await sessions.close();
  const blocks = disk.blocks.map((block) => block.filter((type) => type !== "text_delta"));
  const withStart = blocks.filter((block) => block.includes("internal_agent_started"));
  expect(withStart).toHaveLength(1);
  expect(withStart[0]?.length).toBeGreaterThan(1);
  expect(types.indexOf("internal_agent_started")).toBeLessThan(types.indexOf("run_completed"));
  expect(blocks.filter((block) => block.length > 0).at(-1)).toEqual([
    "internal_agent_usage_recorded",
    "internal_agent_completed",
    "session_title_committed",
  ]);
});
