import { EVENT_PAYLOADS, EventEnvelope } from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { acceptorOf } from "../../../../kernel/src/support/accept-plain.ts";

const SCHEMAS: [name: string, schema: z.ZodType][] = [
  ...Object.entries(EVENT_PAYLOADS),
  ["the envelope", EventEnvelope],
];
const digest = "0".repeat(64);
/** At least one for every kind of text in an event. */
const TEXTS = [
  "custom.test/model",
  "default",
  "read",
  "Zażółć",
  "01890000-0000-7000-8000-000000000000",
  "01890000-0000-7000-8000-000000000001",
  digest,
  `sha256:${digest}`,
  "2026-01-01T00:00:00.000Z",
  `artifact://sha256/${digest}`,
];

describe("[S-052] a value that is taken as it is", () => {
  test.for(SCHEMAS)("is what the schema makes of it: %s", ([, schema]) => {
    const accepts = acceptorOf(schema);
    const damage = fc.record({
      at: fc.nat(),
      how: fc.constantFrom("drop", "put", "add"),
      with: anything,
    });
    fc.assert(
      fc.property(valuesOf(schema), fc.array(damage, { maxLength: 2 }), (value, damages) => {
        const whole = JSON.stringify(value);
        const text = damages.reduce((line, each) => damaged(line, each), whole);
        const given: unknown = JSON.parse(text);
        const isAccepted = accepts(given);
        const parsed = schema.safeParse(JSON.parse(text));
        if (isAccepted) expect({ success: true, data: given }).toStrictEqual(parsed);
        if (text === whole) expect(isAccepted).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("has no member that the schema would drop, and no name with a meaning of its own", () => {
    const accepts = acceptorOf(EVENT_PAYLOADS.user_input_recalled);
    const payload = '"type":"user_input_recalled","user_input_seq":1,"input":"x"';
    expect(accepts(JSON.parse(`{${payload}}`))).toBe(true);
    for (const extra of ['"more":1', '"__proto__":{}', '"constructor":{}', '"toString":1']) {
      expect(accepts(JSON.parse(`{${payload},${extra}}`)), extra).toBe(false);
    }
    const acceptsEnvelope = acceptorOf(EventEnvelope.shape.payload);
    expect(acceptsEnvelope(JSON.parse('{"type":"x","more":1}'))).toBe(true);
    expect(acceptsEnvelope(JSON.parse('{"type":"x","__proto__":{}}'))).toBe(false);
  });
});

const notX = (value: unknown) => value !== "x";
const text = z.string();
/** What no event uses yet, with values that a test built from less than the whole schema would get wrong. */
const FEATURES: [name: string, schema: z.ZodType, values: unknown[]][] = [
  ["a check of an optional", z.object({ a: text.optional().refine(notX) }), ["x", undefined]],
  [
    "a check of a default",
    z.object({
      a: text
        .nullable()
        .default(null)
        .refine((value) => notX(value) && value !== null),
    }),
    ["x", undefined],
  ],
  ["a check that adds issues", z.object({ a: text.superRefine(addIssueForX) }), ["x", "y"]],
  ["a check of what else is there", z.object({}).catchall(z.unknown().refine(notX)), ["x"]],
  ["a check of a record's values", z.record(text, z.unknown().refine(notX)), ["x"]],
  ["a format of a record's keys", z.record(z.uuid(), z.unknown()), ["x"]],
  [
    "a check of a record's keys",
    z.record(
      text.refine((key) => key !== "a"),
      z.unknown(),
    ),
    ["x"],
  ],
  ["a transform", z.object({ a: text.transform((value) => `${value}!`) }), ["x"]],
  ["a text that is trimmed", z.object({ a: text.trim() }), [" x", "x"]],
  ["a default other than null", z.object({ a: text.default("d") }), [undefined]],
  ["a catch", z.object({ a: text.catch("d") }), [1, undefined]],
  ["a tuple", z.object({ a: z.tuple([text]) }), [["x"], ["x", 1]]],
  ["an intersection", z.intersection(z.object({ a: text }), z.object({ b: text })), ["x"]],
  ["a union without a tag", z.object({ a: z.union([text.trim(), z.number()]) }), [" x", 1, null]],
  ["a lazy schema", z.object({ a: z.lazy(() => text.trim()) }), [" x"]],
  ["a coercion", z.object({ a: z.coerce.number() }), ["1", 1]],
];

function addIssueForX(value: string, context: z.RefinementCtx): void {
  if (value === "x") context.addIssue("no x");
}

test.for(FEATURES)("[S-052] is not wrong about %s", ([, schema, values]) => {
  const accepts = acceptorOf(schema);
  for (const a of values) {
    const line = JSON.stringify({ a });
    const given: unknown = JSON.parse(line);
    if (!accepts(given)) continue;
    expect({ success: true, data: given }).toStrictEqual(schema.safeParse(JSON.parse(line)));
  }
});

const anything = fc.jsonValue({ maxDepth: 1 });

type Damage = { at: number; how: string; with: unknown };

/** The line with one member of any object or list in it dropped, replaced or added. */
function damaged(line: string, { at, how, with: replacement }: Damage): string {
  const root = JSON.parse(line) as unknown;
  const places: [holder: object, key: string][] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      places.push([value, key]);
      visit(member);
    }
  };
  visit(root);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return line;
  const [holder, key] = place;
  if (how === "drop") Reflect.deleteProperty(holder, key);
  else Reflect.set(holder, how === "add" ? `${key}_more` : key, replacement);
  return JSON.stringify(root);
}

/** Values that the schema takes, as JSON can hold them. */
function valuesOf(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  const { def, values } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "object": {
      const members = Object.entries(def.shape);
      const required = members.filter(([, member]) => member._zod.optin === undefined);
      const objects = fc.record(
        Object.fromEntries(members.map(([key, each]) => [key, valuesOf(each)])),
        { requiredKeys: required.map(([key]) => key) },
      );
      if ((def.checks ?? []).length === 0) return objects;
      return objects.filter((value) => taken(schema, [value]).length > 0);
    }
    case "string":
      return fc.constantFrom(...taken(schema, TEXTS));
    case "number":
      return fc.constantFrom(...taken(schema, [0, 1, 4, 7, Number.MAX_SAFE_INTEGER]));
    case "boolean":
      return fc.boolean();
    case "literal":
    case "enum":
      return fc.constantFrom(...(values ?? []));
    case "array":
      return fc
        .uniqueArray(valuesOf(def.element), { maxLength: 3 })
        .filter((list) => taken(schema, [list]).length > 0);
    case "nullable":
      return fc.option(valuesOf(def.innerType));
    case "optional":
    case "default":
      return valuesOf(def.innerType);
    case "union":
      return fc.oneof(...def.options.map((option) => valuesOf(option)));
    case "record":
      return fc.dictionary(fc.string({ minLength: 1, maxLength: 3 }), anything, {
        noNullPrototype: true,
      });
    case "unknown":
      return anything;
    default:
      throw new Error(`no values for ${def.type}`);
  }
}

function taken(schema: z.core.$ZodType, candidates: readonly unknown[]): unknown[] {
  return candidates.filter((each) => (schema as z.ZodType).safeParse(each).success);
}
