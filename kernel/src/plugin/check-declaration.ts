import {
  CookieError,
  findDeclarationProblem,
  type JsonObject,
  type ToolDeclaration,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";

const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_SCHEMA_DEPTH = 64;
const MAX_PATTERN_LENGTH = 256;
/** Members whose value is data, not a schema. */
const DATA_MEMBERS = new Set(["const", "default", "enum", "examples"]);

/**
 * Checks what a tool declaration says beyond its shape (E-034, E-070, E-078). Throws `invalid_declaration` naming the
 * member. Shipped declarations are generated and tested, so their schemas are not held against the metaschema here.
 */
export async function checkDeclarations(
  tools: readonly ToolDeclaration[],
  tier: TrustTier,
): Promise<void> {
  const names = new Set<string>();
  for (const tool of tools) {
    const where = `tools.${tool.name}`;
    if (names.has(tool.name)) reject(where, "the tool is declared twice");
    names.add(tool.name);
    checkMembers(tool);
    if (tier !== "first_party") await checkSchema(`${where}.parameters`, tool.parameters, tier);
  }
}

/** The same for a tool that a running process declares: no build has tested it, whoever wrote the plugin. */
export async function checkDynamicDeclaration(
  tool: ToolDeclaration,
  { tier, anyName }: { readonly tier: TrustTier; readonly anyName: boolean },
): Promise<void> {
  checkMembers(tool, anyName);
  await checkSchema(`tools.${tool.name}.parameters`, tool.parameters, tier);
}

/** Checks one JSON Schema 2020-12 of a third party: bounded, self-contained, valid. */
export async function checkSchema(
  where: string,
  schema: JsonObject,
  tier: TrustTier,
): Promise<void> {
  // Depth first: everything after it may recurse.
  walk(schema, 0, (value, depth) => {
    if (depth > MAX_SCHEMA_DEPTH) reject(where, `nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
    checkReferences(where, value);
    if (tier === "untrusted") checkPatterns(where, value);
  });
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_SCHEMA_BYTES) {
    reject(where, `larger than ${MAX_SCHEMA_BYTES} bytes`);
  }
  const problem = await findSchemaProblem(schema);
  if (problem !== undefined) reject(where, `not a JSON Schema 2020-12: ${problem}`);
}

function checkMembers(tool: ToolDeclaration, anyName = false): void {
  const found = findDeclarationProblem(tool, { anyName });
  if (found !== undefined) reject(`tools.${tool.name}.${found.member}`, found.problem);
}

function checkReferences(where: string, schema: JsonObject): void {
  for (const member of ["$ref", "$dynamicRef"]) {
    const target = schema[member];
    if (typeof target === "string" && !target.startsWith("#")) {
      reject(where, `${member} points outside the schema`);
    }
  }
}

function checkPatterns(where: string, schema: JsonObject): void {
  const patterns: string[] = [];
  if (typeof schema["pattern"] === "string") patterns.push(schema["pattern"]);
  const byPattern = schema["patternProperties"];
  if (isJsonObject(byPattern)) patterns.push(...Object.keys(byPattern));
  for (const pattern of patterns) {
    if (pattern.length > MAX_PATTERN_LENGTH) {
      reject(where, `a pattern is longer than ${MAX_PATTERN_LENGTH} characters`);
    }
    if (/\\[1-9k]|\(\?(?:=|!|<[=!])/.test(pattern) || hasNestedQuantifier(pattern)) {
      reject(where, "a pattern uses a backreference, lookaround or nested quantifier");
    }
  }
}

/** True when a group that repeats something is itself repeated. */
function hasNestedQuantifier(pattern: string): boolean {
  const repeats: boolean[] = [];
  let justClosedRepeating = false;
  let inClass = false;
  for (let index = 0; index < pattern.length; index += 1) {
    const char = pattern[index] ?? "";
    const closedRepeating = justClosedRepeating;
    justClosedRepeating = false;
    if (char === "\\") index += 1;
    else if (inClass) inClass = char !== "]";
    else if (char === "[") inClass = true;
    else if (char === "(") {
      repeats.push(false);
      // The `?` of `(?:` is no quantifier.
      if (pattern[index + 1] === "?") index += 1;
    } else if (char === ")") {
      justClosedRepeating = repeats.pop() ?? false;
      if (justClosedRepeating && repeats.length > 0) repeats[repeats.length - 1] = true;
    } else if (char === "*" || char === "+" || char === "{") {
      if (closedRepeating) return true;
      if (repeats.length > 0) repeats[repeats.length - 1] = true;
    }
  }
  return false;
}

let validator: Promise<(schema: JsonObject) => string | undefined> | undefined;

/** The validator is heavy, so it is loaded with the first third-party declaration. */
async function findSchemaProblem(schema: JsonObject): Promise<string | undefined> {
  validator ??= import("../support/json-schema-2020.ts").then(({ Ajv2020 }) => {
    const ajv = new Ajv2020({ strict: false, logger: false });
    return (candidate) => {
      try {
        return ajv.validateSchema(candidate) === true ? undefined : ajv.errorsText();
      } catch (error) {
        return error instanceof Error ? error.message : "invalid";
      }
    };
  });
  return (await validator)(schema);
}

function walk(
  value: unknown,
  depth: number,
  visit: (schema: JsonObject, depth: number) => void,
): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, depth + 1, visit);
    return;
  }
  if (!isJsonObject(value)) return;
  visit(value, depth);
  for (const [member, inner] of Object.entries(value)) {
    if (!DATA_MEMBERS.has(member)) walk(inner, depth + 1, visit);
  }
}

function reject(member: string, problem: string): never {
  throw new CookieError("invalid_declaration", `${member}: ${problem}`, { data: { member } });
}
