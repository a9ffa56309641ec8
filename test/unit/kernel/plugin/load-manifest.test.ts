import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject, TrustTier } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  checkConfig,
  loadFirstParty,
  parseManifest,
  readManifestFile,
} from "../../../../kernel/src/plugin/load-manifest.ts";
import { manifestOf, tempDirectory } from "./open-host.ts";

const tool = (more: JsonObject = {}) => ({
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
  permission_name: "look",
  ...more,
});
const parameters = (schema: JsonObject) => ({
  tools: [tool({ parameters: { type: "object", ...schema } })],
});
const bytesOf = (more: JsonObject) => Buffer.from(JSON.stringify({ ...manifestOf(), ...more }));
const parse = (more: JsonObject, tier: TrustTier = "untrusted") =>
  parseManifest(bytesOf(more), "sample", tier);

describe("parseManifest", () => {
  test("[E-034] a complete manifest is accepted as it stands", async () => {
    const manifest = { tools: [tool({ prepare: { mode: "dynamic", actions: ["plugin"] } })] };
    expect(await parse(manifest)).toEqual({ ...manifestOf(), ...manifest });
  });

  let deep: JsonObject = { type: "string" };
  for (let level = 0; level < 70; level += 1) deep = { not: deep };

  test.for<[string, JsonObject, RegExp]>([
    ["an unknown member", { surprise: 1 }, /surprise: unknown member/],
    ["an unknown member of a tool", { tools: [tool({ x: 1 })] }, /tools\.0\.x: unknown member/],
    ["another name", { name: "other" }, /name: the manifest says other/],
    ["a tool name that is not snake_case", { tools: [tool({ name: "Look" })] }, /Look\.name/],
    ["a tool declared twice", { tools: [tool(), tool()] }, /tools\.look: .*twice/],
    ["parameters that are no object", { tools: [tool({ parameters: {} })] }, /parameters\.type/],
    [
      "a display argument that does not exist",
      { tools: [tool({ display_argument: "nowhere" })] },
      /display_argument.*nowhere/,
    ],
    [
      "a static resource from an argument that does not exist",
      {
        tools: [
          tool({
            prepare: { mode: "static", resources: [{ action: "plugin", arg: "nowhere" }] },
          }),
        ],
      },
      /prepare\.resources\.0\.arg.*nowhere/,
    ],
    ["a schema against its metaschema", parameters({ required: "at" }), /tools\.look\.parameters/],
    [
      "a reference out of the schema",
      parameters({ properties: { a: { $ref: "https://example.com/x" } } }),
      /\$ref points outside/,
    ],
    ["a schema that is too deep", parameters({ properties: { a: deep } }), /nested deeper/],
    [
      "a schema that is too large",
      parameters({ description: "x".repeat(70_000) }),
      /larger than 65536 bytes/,
    ],
  ])("[E-034] %s fails and names the member", async ([, change, message]) => {
    await expect(parse(change)).rejects.toMatchObject({
      code: "invalid_declaration",
      message: expect.stringMatching(message),
    });
  });

  test.for([
    ["a lookahead", "(?=a)b"],
    ["a backreference", "(a)\\1"],
    ["a nested quantifier", "^(a+)+$"],
    ["a deeply nested quantifier", "((ab*)c)*"],
    ["more than 256 characters", "a".repeat(257)],
  ])("[E-078] the pattern of an untrusted schema may not have %s", async ([, pattern]) => {
    const schema = parameters({ properties: { at: { type: "string", pattern } } });
    await expect(parse(schema)).rejects.toMatchObject({ code: "invalid_declaration" });
  });

  test.for(["^[a-z(+*]+$", "(?:ab)+c?", "\\(x+\\)+", "(a|b){1,3}"])(
    "[E-078] the harmless pattern %s is accepted",
    async (pattern) => {
      const schema = parameters({ properties: { at: { type: "string", pattern } } });
      await expect(parse(schema)).resolves.toBeDefined();
    },
  );

  test("bytes that are no JSON in UTF-8 are refused", async () => {
    await expect(
      parseManifest(Buffer.from([0x22, 0xff, 0x22]), "sample", "untrusted"),
    ).rejects.toMatchObject({ code: "invalid_declaration" });
  });
});

describe("checkConfig", () => {
  const manifest = manifestOf({
    config_schema: {
      type: "object",
      properties: { colour: { type: "string", pattern: "^[a-z]+$" } },
      additionalProperties: false,
    },
  });

  test("[E-040] the config of an entry is held against config_schema", async () => {
    await expect(checkConfig(manifest, { colour: "red" })).resolves.toBeUndefined();
    await expect(checkConfig(manifest, { colour: "RED" })).rejects.toMatchObject({
      code: "invalid_declaration",
      message: expect.stringContaining("config/colour"),
    });
  });
});

describe("files", () => {
  async function directoryWith(text: string) {
    const directory = await tempDirectory();
    await writeFile(join(directory, "cookie-plugin.json"), text);
    return directory;
  }

  test("[E-030] the digest is that of the bytes, and more than 1 MiB is refused", async () => {
    const small = await readManifestFile(await directoryWith("{}"));
    expect(small.digest).toBe(
      "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    );
    const large = await directoryWith(" ".repeat(1024 * 1024 + 1));
    await expect(readManifestFile(large)).rejects.toMatchObject({ code: "invalid_declaration" });
  });

  test("shipped plugins come in the given order, and a folder that is gone is left out", async () => {
    const first = await directoryWith(JSON.stringify(manifestOf({ name: "builtin.one" })));
    const second = await directoryWith(JSON.stringify(manifestOf({ name: "builtin.two" })));
    const found = await loadFirstParty([first, join(second, "missing"), second]);
    expect(found.map(({ id }) => id)).toEqual(["builtin.one", "builtin.two"]);
  });
});
