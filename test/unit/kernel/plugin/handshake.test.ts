import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  callOf,
  entryFor,
  FIXTURES,
  manifestOf,
  never,
  openHost,
  tempDirectory,
} from "./open-host.ts";

const TOOL = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: {} },
  permission_name: "look",
};
const OTHER = { ...TOOL, name: "listen", permission_name: "listen" };
const NAME = { name: "answering" };

/** Starts `answering.mjs` with this introduction; with a manifest when one is given. */
async function introduce(answer: unknown, manifest?: Record<string, unknown>) {
  const program = join(FIXTURES, "answering.mjs");
  const env = { ANSWER: JSON.stringify(answer) };
  if (manifest === undefined) {
    const launch = { kind: "command" as const, command: process.execPath, args: [program] };
    return openHost({ entries: [entryFor("answering", { launch, env })] });
  }
  const directory = await tempDirectory();
  const runtime = { kind: "exec" as const, command: process.execPath, args: [program] };
  const text = JSON.stringify({ ...manifestOf({ ...NAME, runtime }), ...manifest });
  await writeFile(join(directory, "cookie-plugin.json"), text);
  return openHost({
    entries: [entryFor("answering", { launch: { kind: "path", directory }, env })],
  });
}

async function reasonOf(opened: Awaited<ReturnType<typeof introduce>>) {
  await opened.host.ready();
  await opened.host.call("answering", callOf("look"), never()).catch(() => undefined);
  return opened.host.status()[0];
}

describe("a plugin without manifest", () => {
  test("[E-024] it brings capabilities and tools and is connected", async () => {
    const opened = await introduce({ capabilities: { tools: true }, tools: [TOOL] });
    expect(await reasonOf(opened)).toMatchObject({ state: "connected", tools: ["look"] });
  });

  test.for([
    ["[E-020] another version", { protocol_version: "9.9.9" }, /version_mismatch.*9\.9\.9/],
    ["[E-024] another name", { name: "someone" }, /protocol_violation.*someone/],
    ["[E-024] no tools", { tools: undefined }, /protocol_violation.*capabilities and tools/],
    ["[E-024] an unknown member", { surprise: 1 }, /protocol_violation.*surprise/],
    [
      "[E-034] a bad declaration",
      { tools: [{ ...TOOL, parameters: { type: "array" } }] },
      /invalid_declaration.*tools\.look\.parameters/,
    ],
    [
      "[E-114] an action beyond its tier",
      { tools: [{ ...TOOL, prepare: { mode: "dynamic", actions: ["write"] } }] },
      /invalid_declaration.*tools\.look\.prepare.*write/,
    ],
  ] as const)("%s fails it with the reason", async ([, answer, reason]) => {
    const opened = await introduce({ capabilities: {}, tools: [TOOL], ...answer });
    expect(await reasonOf(opened)).toMatchObject({
      state: "failed",
      reason: expect.stringMatching(reason),
      tools: [],
    });
  });
});

describe("a plugin with a manifest", () => {
  const manifest = { tools: [TOOL, OTHER], capabilities: { host: ["artifacts.read"] } };

  test("[E-035] it may say nothing about tools and capabilities", async () => {
    const opened = await introduce({}, manifest);
    expect(await reasonOf(opened)).toMatchObject({
      state: "connected",
      tools: ["look", "listen"],
    });
  });

  test("[E-035] a tool it withdraws is unavailable", async () => {
    const opened = await introduce({ tools: [TOOL] }, manifest);
    expect(await reasonOf(opened)).toMatchObject({ state: "connected", tools: ["look"] });
    await expect(opened.host.call("answering", callOf("listen"), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
  });

  test.for([
    ["an unknown tool", { tools: [{ ...TOOL, name: "taste" }] }, /taste/],
    ["another description", { tools: [{ ...TOOL, description: "Stares." }] }, /look/],
    ["a larger capability", { capabilities: { host: ["artifacts.read", "media"] } }, /host/],
    ["a new capability", { capabilities: { publish_bus: true } }, /publish_bus/],
  ] as const)("[E-035] %s is a manifest_mismatch", async ([, answer, reason]) => {
    const opened = await introduce(answer, manifest);
    const status = await reasonOf(opened);
    expect(status?.state).toBe("failed");
    expect(status?.reason).toMatch(/^manifest_mismatch/);
    expect(status?.reason).toMatch(reason);
  });

  test("[E-021] a package that speaks another version is refused before it is started", async () => {
    const { host } = await introduce({}, { ...manifest, protocol: ["0.0.9"] });
    expect(host.status()).toMatchObject([
      { state: "failed", reason: expect.stringMatching(/version_mismatch.*0\.0\.9.*0\.1\.0/) },
    ]);
  });
});
