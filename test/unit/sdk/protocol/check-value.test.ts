import { checkValue, Manifest, ToolDeclaration } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import * as z from "zod";

const Shape = z.strictObject({
  text: z.string(),
  count: z.int(),
  on: z.boolean(),
  list: z.array(z.string()),
  map: z.record(z.string(), z.string()),
  kind: z.enum(["a", "b"]),
  only: z.literal("c"),
  either: z.union([z.string(), z.array(z.string())]),
});
const GOOD = { text: "", count: 1, on: true, list: [], map: {}, kind: "a", only: "c", either: "" };

function problemsOf(schema: z.ZodType, value: unknown): string[] {
  const checked = checkValue(schema, value);
  if (checked.ok) return [];
  return checked.problems.map(({ path, problem }) => `${path.join(".")}: ${problem}`);
}

test("a member that is missing is named as required, with what belongs there", () => {
  expect(problemsOf(Shape, GOOD)).toEqual([]);
  expect(problemsOf(Shape, {})).toEqual([
    "text: is required; expected a string",
    "count: is required; expected a number",
    "on: is required; expected true or false",
    "list: is required; expected a list",
    "map: is required; expected an object",
    'kind: is required; expected one of "a", "b"',
    'only: is required; expected "c"',
    "either: is required; expected a string or a list",
  ]);
});

test("a member of another kind says what was expected and what came, never the value", () => {
  const wrong = {
    text: 7,
    count: 1.5,
    on: null,
    list: {},
    map: [],
    kind: "x",
    only: "y",
    either: 3,
  };
  expect(problemsOf(Shape, wrong)).toEqual([
    "text: expected a string, received a number",
    "count: expected an integer, received a number",
    "on: expected true or false, received null",
    "list: expected a list, received an object",
    "map: expected an object, received a list",
    'kind: expected one of "a", "b"',
    'only: expected "c"',
    "either: expected a string or a list",
  ]);
  expect(problemsOf(Shape, { ...GOOD, secret: "s3cret" })).toEqual(["secret: unknown member"]);
});

test("of several forms the nearest one is spoken of", () => {
  const Forms = z.union([
    z.strictObject({ path: z.string() }),
    z.strictObject({ url: z.string(), method: z.string(), body: z.string() }),
  ]);
  expect(problemsOf(Forms, { path: 1 })).toEqual(["path: expected a string, received a number"]);
  expect(problemsOf(Forms, 3)).toEqual([": expected an object"]);
});

test("[E-034] the members that every manifest and every tool needs are named", () => {
  expect(checkValue(Manifest, { manifest: 1 }, "the file")).toMatchObject({
    field: "name",
    problem: "is required; expected a string",
  });
  const runtime = { kind: "shell" };
  const rest = { manifest: 1, name: "a", version: "1.0.0", protocol: ["0.1.0"] };
  expect(checkValue(Manifest, { ...rest, runtime })).toMatchObject({
    field: "runtime.kind",
    problem: 'expected one of "node", "exec"',
  });
  expect(checkValue(Manifest, { ...rest, runtime: {} })).toMatchObject({
    field: "runtime.kind",
    problem: 'is required; expected one of "node", "exec"',
  });
  expect(checkValue(ToolDeclaration, null, "the declaration")).toMatchObject({
    field: "the declaration",
    problem: "expected an object, received null",
  });
});
