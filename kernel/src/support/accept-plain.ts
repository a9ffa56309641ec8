import type * as z from "zod";

/**
 * True only for JSON that its schema takes and hands back as it is, but for members that the schema makes null where
 * they are absent: those are made so in place. False says nothing: the schema itself has to judge.
 */
export type Acceptor<T = unknown> = (value: unknown) => value is T;

type Test = (value: unknown) => boolean;
type Definition = z.core.$ZodTypes["_zod"]["def"];

/** Built from the schema and its own checks, at a fraction of its cost: nothing is copied, no issue is described. */
export function acceptorOf<S extends z.core.$ZodType>(schema: S): Acceptor<z.output<S>> {
  return testOf(schema) as Acceptor<z.output<S>>;
}

function testOf(schema: z.core.$ZodType): Test {
  const definition = schema._zod.def as Definition;
  const checks = checksOf(schema);
  if (definition.type === "string") return testText(checks.map(testOfCheck));
  return testAll([...new Set([testOfType(definition, schema), ...checks.map(testOfCheck)])]);
}

/** Most branches of a schema are never met in a log, so those that may be missing are built when they are. */
function laterTestOf(schema: z.core.$ZodType): Test {
  let test: Test | undefined;
  return (value) => {
    test ??= testOf(schema);
    return test(value);
  };
}

function testOfType(definition: Definition, schema: z.core.$ZodType): Test {
  switch (definition.type) {
    case "object":
      return testObject(definition);
    case "number":
      return checksOf(schema).some(isSafeInteger) ? Number.isSafeInteger : Number.isFinite;
    case "boolean":
      return (value) => typeof value === "boolean";
    case "literal":
    case "enum":
      return testOneOf(schema._zod.values ?? new Set());
    case "array":
      return testArray(laterTestOf(definition.element));
    case "nullable":
      return testNullable(laterTestOf(definition.innerType));
    case "union":
      return testTagged(definition as z.core.$ZodDiscriminatedUnionDef);
    case "record":
      return isBare(definition.keyType, "string") && isBare(definition.valueType, "unknown")
        ? isPlainRecord
        : refuse;
    case "unknown":
      return () => true;
    default:
      return refuse;
  }
}

const refuse: Test = () => false;

/** True when the schema asks for nothing but its type. */
function isBare(schema: z.core.$ZodType, type: Definition["type"]): boolean {
  return schema._zod.def.type === type && checksOf(schema).length === 0;
}

function checksOf(schema: z.core.$ZodType): z.core.$ZodCheck<never>[] {
  const { def } = schema._zod;
  const own = "check" in def ? [schema as z.core.$ZodType & z.core.$ZodCheck<never>] : [];
  return [...own, ...(def.checks ?? [])];
}

type CheckDefinition = z.core.$ZodChecks["_zod"]["def"] | z.core.$ZodCustomDef;

function testOfCheck(check: z.core.$ZodCheck<never>): Test {
  const definition = check._zod.def as CheckDefinition;
  switch (definition.check) {
    case "custom": {
      const { fn } = definition as Partial<z.core.$ZodCustomDef>;
      if (fn === undefined) break;
      return (value) => Boolean(fn(value));
    }
    case "string_format": {
      const { pattern } = definition;
      if (definition.format !== "regex" || pattern?.flags.match(/[gy]/) !== null) break;
      return (value) => pattern.test(value as string);
    }
    default:
      break;
  }
  return isSafeInteger(check) ? Number.isSafeInteger : testByRunning(check);
}

function isSafeInteger(check: z.core.$ZodCheck<never>): boolean {
  const definition = check._zod.def as CheckDefinition;
  return definition.check === "number_format" && definition.format === "safeint";
}

/** The check as the schema runs it; one that changes its value has not taken it as it is. */
function testByRunning(check: z.core.$ZodCheck<never>): Test {
  const payload: z.core.ParsePayload = { value: undefined, issues: [] };
  return (value) => {
    payload.value = value;
    void check._zod.check(payload as z.core.ParsePayload<never>);
    if (payload.issues.length === 0) return payload.value === value;
    payload.issues = [];
    return false;
  };
}

const MAX_REMEMBERED_LENGTH = 128;

function testText(tests: readonly Test[]): Test {
  if (tests.length === 0) return (value) => typeof value === "string";
  const test = testAll(tests);
  // Ids, model names and fingerprints are mostly those of the line before.
  let last: string | undefined;
  return (value) => {
    if (typeof value !== "string") return false;
    if (value === last) return true;
    if (!test(value)) return false;
    if (value.length <= MAX_REMEMBERED_LENGTH) last = value;
    return true;
  };
}

function testAll(tests: readonly Test[]): Test {
  const [first, second] = tests;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  if (tests.length === 2) return (value) => first(value) && second(value);
  return (value) => tests.every((test) => test(value));
}

interface Member {
  readonly key: string;
  readonly test: Test;
  readonly whenAbsent: "refuse" | "accept" | "set_null";
}

function testObject({ shape, catchall }: z.core.$ZodObjectDef): Test {
  const members = Object.entries(shape).map(([key, schema]) => memberOf(key, schema));
  const takesOthers = catchall !== undefined && isBare(catchall, "unknown");
  return (value) => {
    if (!isRecord(value)) return false;
    let unknownCount = countMembers(value);
    // Counted loops: iterators take most of the time until the code is optimized, which a short log never is.
    for (let index = 0; index < members.length; index += 1) {
      const { key, test, whenAbsent } = members[index] as Member;
      const member = value[key];
      if (member === undefined) {
        if (whenAbsent === "refuse") return false;
        if (whenAbsent === "set_null") value[key] = null;
      } else {
        if (!test(member)) return false;
        unknownCount -= 1;
      }
    }
    return unknownCount === 0 || (takesOthers && !Object.hasOwn(value, "__proto__"));
  };
}

/** As `Object.keys` counts them, without its list. */
function countMembers(value: Record<string, unknown>): number {
  let count = 0;
  for (const _ in value) count += 1;
  return count;
}

function memberOf(key: string, schema: z.core.$ZodType): Member {
  const definition = schema._zod.def as Definition;
  if (checksOf(schema).length > 0) return { key, test: testOf(schema), whenAbsent: "refuse" };
  if (definition.type === "optional" && definition.innerType._zod.optin === undefined) {
    return { key, test: laterTestOf(definition.innerType), whenAbsent: "accept" };
  }
  if (definition.type === "default" && definition.defaultValue === null) {
    return { key, test: laterTestOf(definition.innerType), whenAbsent: "set_null" };
  }
  return { key, test: testOf(schema), whenAbsent: "refuse" };
}

function testOneOf(values: ReadonlySet<unknown>): Test {
  const [only] = values;
  return values.size === 1 ? (value) => value === only : (value) => values.has(value);
}

function testArray(test: Test): Test {
  return (value) => Array.isArray(value) && value.every(test);
}

function testNullable(test: Test): Test {
  return (value) => value === null || test(value);
}

function testTagged({ discriminator, options }: z.core.$ZodDiscriminatedUnionDef): Test {
  const byTag = new Map<unknown, Test>();
  for (const option of options) {
    const test = laterTestOf(option);
    for (const tag of option._zod.propValues?.[discriminator] ?? []) byTag.set(tag, test);
  }
  return (value) => isRecord(value) && byTag.get(value[discriminator])?.(value) === true;
}

/** Free of the two names that mean something to a reader of JavaScript objects. */
function isPlainRecord(value: unknown): boolean {
  return (
    isRecord(value) && !Object.hasOwn(value, "__proto__") && !Object.hasOwn(value, "constructor")
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
