import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { Manifest } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { PluginDriver } from "../../support/plugin-driver.ts";

function manifestOf(name: string): Manifest {
  const file = new URL(`../../../plugins/${name}/cookie-plugin.json`, import.meta.url);
  return Manifest.parse(JSON.parse(readFileSync(file, "utf8")));
}

const factsOf = ({ tools = [] }: Manifest) =>
  tools.map(({ description, parameters, ...facts }) => ({
    ...facts,
    properties: Object.keys(parameters["properties"] as object),
    required: parameters["required"],
  }));

test("[E-031] [E-058] [E-073] builtin.fs declares the slots read, write and edit", () => {
  const manifest = manifestOf("fs");
  expect(manifest).toMatchObject({
    name: "builtin.fs",
    runtime: { kind: "node", entry: "dist/fs.js", group: "core" },
    capabilities: { host: ["artifacts.read", "media"] },
  });
  const file = { display_argument: "filePath", concurrency: "parallel", timeout_ms: 300_000 };
  const writing = { permission_name: "write", prepare: { mode: "dynamic", actions: ["write"] } };
  expect(factsOf(manifest)).toEqual([
    {
      name: "read",
      permission_name: "read",
      prepare: { mode: "dynamic", actions: ["read"] },
      result_truncation: "opt_out",
      properties: ["filePath", "offset", "byte", "limit"],
      required: ["filePath"],
      ...file,
    },
    {
      name: "write",
      properties: ["filePath", "content"],
      required: ["filePath", "content"],
      ...writing,
      ...file,
    },
    {
      name: "edit",
      properties: ["filePath", "oldString", "newString"],
      required: ["filePath", "oldString", "newString"],
      ...writing,
      ...file,
    },
  ]);
});

test("[E-031] [E-058] [E-073] builtin.bash declares the slot bash", () => {
  const manifest = manifestOf("bash");
  expect(manifest).toMatchObject({
    name: "builtin.bash",
    runtime: { kind: "node", entry: "dist/bash.js", group: "exec" },
    env: { inherit: "*" },
  });
  expect(factsOf(manifest)).toEqual([
    {
      name: "bash",
      permission_name: "bash",
      profile: ["cookie"],
      display_argument: "command",
      prepare: {
        mode: "static",
        resources: [
          {
            action: "bash",
            arg: "command",
            as: "command",
            lifetime: "restart_stable",
            boundary: "exact",
          },
        ],
      },
      concurrency: "parallel",
      output: { mode: "named", streams: ["stdout", "stderr"] },
      timeout_ms: null,
      stdin_argument: "interactive",
      properties: ["command", "timeout", "interactive"],
      required: ["command"],
    },
  ]);
});

test("[E-200] folder, id and package of a shipped plugin have one name", () => {
  const names = "fs bash webfetch delegation messaging goals skills mcp cognitio".split(" ");
  const root = fileURLToPath(new URL("../../../plugins", import.meta.url));
  const folders = readdirSync(root);
  expect(folders).toEqual(expect.arrayContaining(["fs", "bash"]));
  for (const folder of folders) {
    expect(names).toContain(folder);
    expect(manifestOf(folder).name).toBe(`builtin.${folder}`);
    const { name } = JSON.parse(readFileSync(`${root}/${folder}/package.json`, "utf8")) as {
      name: string;
    };
    expect(name).toBe(`@cookie-agent/plugin-${folder}`);
  }
});

test.for(["fs", "bash"])(
  "[E-035] [E-038] builtin.%s serves what its manifest says",
  async (name) => {
    const entry = fileURLToPath(
      new URL(`../../../plugins/${name}/dist/${name}.js`, import.meta.url),
    );
    const plugin = await PluginDriver.start(entry, { workspace: tmpdir() });
    const { capabilities, tools } = manifestOf(name);
    expect(plugin.declared).toMatchObject({ name: `builtin.${name}`, capabilities, tools });
    await plugin.close();
  },
);
