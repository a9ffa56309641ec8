import type { JsonObject } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ArgumentChecker } from "../../../../kernel/src/tool/check-arguments.ts";
import { closeParameters } from "../../../../kernel/src/tool/close-parameters.ts";

const checker = new ArgumentChecker();

function check(parameters: JsonObject, input: unknown): Promise<JsonObject> {
  return checker.check({ name: "tool", description: "", parameters }, input);
}

const READ: JsonObject = closeParameters({
  type: "object",
  properties: {
    path: { type: "string" },
    limit: { type: "integer", minimum: 1 },
    deep: { type: "boolean" },
    kind: { enum: ["a", "b"] },
    edits: { type: "array", items: { type: "object", required: ["old"] } },
  },
  required: ["path"],
});

describe("argument check", () => {
  test("good arguments come back as they are", async () => {
    const input = { path: "a", limit: 3, deep: true };
    await expect(check(READ, input)).resolves.toBe(input);
  });

  test.for([
    [{ path: "a", limit: "5" }, '"limit" must be integer'],
    [{ path: "a", limit: 1.5 }, '"limit" must be integer'],
    [{ path: "a", limit: 0 }, '"limit" must be >= 1'],
    [{ path: "a", deep: 1 }, '"deep" must be boolean'],
    [{ path: null }, '"path" must be string'],
    [{ path: "a", kind: "c" }, '"kind" must be one of "a", "b"'],
    [{ path: "a", edits: [{}] }, '"edits.0.old" is missing'],
    [{}, '"path" is missing'],
    [null, "the arguments are not a JSON object"],
    [["a"], "the arguments are not a JSON object"],
  ] as const)("[T-010] [T-011] %j: %s, without coercion", async ([input, problem]) => {
    await expect(check(READ, input)).rejects.toMatchObject({
      code: "invalid_arguments",
      message: `invalid arguments for tool: ${problem}. Call tool again with corrected arguments.`,
    });
  });

  test("[T-009] an unknown argument is rejected and the known ones are named", async () => {
    await expect(check(READ, { path: "a", file: "b" })).rejects.toMatchObject({
      message: expect.stringContaining(
        '"file" is not known; known are path, limit, deep, kind, edits',
      ) as unknown,
    });
  });

  test("a pattern that would take forever is matched in linear time", async () => {
    const parameters = {
      type: "object",
      properties: { text: { type: "string", pattern: "^(a+)+$" } },
    };
    await expect(check(parameters, { text: `${"a".repeat(50_000)}!` })).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    await expect(check(parameters, { text: "aaa" })).resolves.toEqual({ text: "aaa" });
  });

  test("patterns of one schema are told apart", async () => {
    const parameters = {
      type: "object",
      properties: { a: { type: "string", pattern: "^x$" }, b: { type: "string", pattern: "^y$" } },
    };
    await expect(check(parameters, { a: "x", b: "y" })).resolves.toBeDefined();
    await expect(check(parameters, { a: "x", b: "x" })).rejects.toMatchObject({
      message: expect.stringContaining('"b"') as unknown,
    });
  });

  test("arguments nested beyond reason are refused, not recursed into", async () => {
    let deep: unknown = "x";
    for (let i = 0; i < 10_000; i += 1) deep = [deep];
    await expect(check({ type: "object" }, { deep })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("nested deeper") as unknown,
    });
  });

  test("schemas of an older draft work too", async () => {
    const parameters = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { pair: { type: "array", items: [{ type: "string" }, { type: "number" }] } },
    };
    await expect(check(parameters, { pair: ["a", 1] })).resolves.toBeDefined();
    await expect(check(parameters, { pair: [1, "a"] })).rejects.toThrow("pair.0");
  });
});
