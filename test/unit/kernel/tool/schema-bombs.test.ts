import { describe, expect, test } from "vitest";
import { checkConfig } from "../../../../kernel/src/plugin/load-manifest.ts";
import { ArgumentChecker } from "../../../../kernel/src/tool/check-arguments.ts";
import { manifestOf } from "../plugin/open-host.ts";

/** Each step refers twice to the next, so that checking doubles at each. */
function doubling(steps: number): Record<string, unknown> {
  const definitions: Record<string, unknown> = { [`d${steps}`]: {} };
  for (let step = 0; step < steps; step += 1) {
    const next = { $ref: `#/$defs/d${step + 1}` };
    definitions[`d${step}`] = { allOf: [next, next] };
  }
  return { type: "object", allOf: [{ $ref: "#/$defs/d0" }], $defs: definitions };
}

const toolOf = (parameters: Record<string, unknown>) => ({
  name: "sample",
  description: "A tool.",
  parameters,
});

describe("a schema whose check does not end", () => {
  test("[E-078] [T-012] fails the calls of its tool and no other, and is not tried again", async () => {
    const checker = new ArgumentChecker();
    const bomb = toolOf(doubling(60));
    const refused = {
      code: "execution_failed",
      message: expect.stringMatching(/schema of sample cannot be used: .*does not end/),
    };
    await expect(checker.check(bomb, { a: 1 })).rejects.toMatchObject(refused);
    await expect(checker.check(bomb, { a: 1 })).rejects.toMatchObject(refused);
    expect(await checker.check(toolOf(doubling(8)), { a: 1 })).toEqual({ a: 1 });
  });

  test("[E-078] one that doubles with each level of the arguments does the same", async () => {
    const deeper = { properties: { a: { $ref: "#/$defs/n" } } };
    const parameters = {
      type: "object",
      properties: { a: { $ref: "#/$defs/n" } },
      $defs: { n: { allOf: [deeper, deeper] } },
    };
    let args: Record<string, unknown> = {};
    for (let level = 0; level < 50; level += 1) args = { a: args };
    await expect(new ArgumentChecker().check(toolOf(parameters), args)).rejects.toMatchObject({
      code: "execution_failed",
    });
  });

  test("[E-034] as the schema of a configuration it fails its plugin", async () => {
    const checking = checkConfig(manifestOf({ config_schema: doubling(60) }), {});
    await expect(checking).rejects.toMatchObject({
      code: "invalid_declaration",
      message: expect.stringMatching(/config_schema: .*does not end/),
    });
  });
});

test("[E-078] a schema that is referred to a thousand times is compiled once", async () => {
  const names = Array.from({ length: 700 }, (_, index) => `p${index}`);
  const large = { properties: Object.fromEntries(names.map((name) => [name, { maxLength: 9 }])) };
  const reference = { $ref: "#/$defs/large" };
  const parameters = {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, reference])),
    $defs: { large },
  };
  const checker = new ArgumentChecker();
  const args = { p1: { p2: "short" } };
  expect(await checker.check(toolOf(parameters), args)).toEqual(args);
  await expect(
    checker.check(toolOf(parameters), { p1: { p2: "much too long" } }),
  ).rejects.toMatchObject({ code: "invalid_arguments" });
});
