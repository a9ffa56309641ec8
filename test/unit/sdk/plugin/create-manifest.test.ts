import {
  createManifest,
  definePlugin,
  defineTool,
  type PluginDefinition,
} from "@cookie-agent/sdk/plugin";
import { Manifest, PluginInitialize } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import * as z from "zod";
import { initializeParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const runtime = { kind: "node", entry: "dist/x.js" } as const;
const content = () => ({ content: "" });

const search = defineTool({
  description: "Search.",
  parameters: z.object({
    pattern: z.string().describe("What to look for"),
    limit: z.int().min(1).default(10),
    offset: z.int().optional(),
  }),
  permissionName: "search",
  displayArgument: "pattern",
  prepare: { mode: "dynamic", actions: ["read"], run: () => ({ resources: [] }) },
  concurrency: "parallel",
  output: { mode: "named", streams: ["matches"] },
  timeoutMs: null,
  revalidate: () => {},
  retrySafe: true,
  availableWhen: ["goal_open"],
  call: content,
});

test("a zod object becomes a strict JSON Schema without $schema", () => {
  const manifest = createManifest(
    definePlugin({ name: "find", version: "1.0.0", tools: { search } }),
    runtime,
  );
  expect(manifest.tools?.[0]?.parameters).toEqual({
    type: "object",
    properties: {
      pattern: { type: "string", description: "What to look for" },
      limit: { type: "integer", minimum: 1, default: 10 },
      offset: { type: "integer" },
    },
    required: ["pattern"],
    additionalProperties: false,
  });
});

test("[E-031] every member of a definition has its place in the manifest", () => {
  const plugin = definePlugin({
    name: "find",
    version: "1.2.3-beta.1",
    group: "core",
    activation: "tool",
    prewarm: "never",
    restart: "never",
    maxInFlight: 4,
    idleMs: 0,
    env: { inherit: ["HOME"] },
    capabilities: { host: ["artifacts.read"] },
    instructions: "Use it.",
    kernelConfig: ["tool_output"],
    configSchema: { type: "object" },
    tools: { search },
  });
  const manifest = createManifest(plugin, { ...runtime, group: "core" });
  expect(Manifest.parse(manifest)).toEqual({
    manifest: 1,
    name: "find",
    version: "1.2.3-beta.1",
    protocol: ["0.1.0"],
    runtime: { kind: "node", entry: "dist/x.js", group: "core" },
    activation: "tool",
    prewarm: "never",
    restart: "never",
    max_in_flight: 4,
    idle_ms: 0,
    env: { inherit: ["HOME"] },
    capabilities: { tools: true, host: ["artifacts.read"] },
    tools: [
      {
        name: "search",
        description: "Search.",
        parameters: expect.any(Object),
        permission_name: "search",
        display_argument: "pattern",
        prepare: { mode: "dynamic", actions: ["read"] },
        concurrency: "parallel",
        output: { mode: "named", streams: ["matches"] },
        timeout_ms: null,
        revalidate: true,
        retry_safe: true,
        available_when: ["goal_open"],
      },
    ],
    instructions: "Use it.",
    kernel_config: ["tool_output"],
    config_schema: { type: "object" },
  });
});

test("[E-035] [E-038] what initialize declares equals the manifest", async () => {
  const plugin = definePlugin({
    name: "echo",
    version: "1.0.0",
    capabilities: { host: ["artifacts.read"] },
    tools: { search },
  });
  const { kernel, stop } = await serveInMemory(plugin, { initialize: false });
  const manifest_digest = `sha256:${"a".repeat(64)}`;
  const answer = await kernel.request(
    PluginInitialize,
    initializeParams({ plugin: { name: "echo", tier: "trusted", manifest_digest } }),
  );
  const manifest = createManifest(plugin, runtime);
  expect(answer).toEqual({
    protocol_version: "0.1.0",
    name: "echo",
    version: "1.0.0",
    capabilities: manifest.capabilities,
    tools: manifest.tools,
    manifest_digest,
  });
  await stop();
});

test.for<[string, Partial<PluginDefinition>, string]>([
  ["a bad plugin name", { name: "Bad Name" }, "name"],
  ["a bad version", { version: "1" }, "version"],
  ["a bad tool name", { tools: { "no spaces": search } }, "tools.no spaces.name"],
  ["a tool name that no kernel takes", { tools: { findFiles: search } }, "tools.findFiles.name"],
  [
    "an argument that is none",
    { tools: { search: { ...search, stdinArgument: "input" } } },
    "tools.search.stdin_argument",
  ],
  [
    "a resource of an argument that is none",
    {
      tools: {
        search: {
          ...search,
          prepare: { mode: "static", resources: [{ action: "plugin", arg: "path" }] },
        },
      },
    },
    "tools.search.prepare.resources.0.arg",
  ],
  ["too many requests in flight", { maxInFlight: 1000 }, "max_in_flight"],
])("[E-034] [E-070] %s is refused by the name of the member", ([, over, member]) => {
  const plugin = definePlugin({ name: "find", version: "1.0.0", tools: {}, ...over });
  expect(() => createManifest(plugin, runtime)).toThrowError(
    expect.objectContaining({ code: "invalid_declaration", data: { member } }),
  );
});
