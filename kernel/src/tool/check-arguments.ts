import { CookieError, type JsonObject } from "@cookie-agent/sdk/protocol";
import type { ErrorObject, ValidateFunction } from "ajv";
import { withinLimit } from "../support/bounded-work.ts";
import { isNestedDeeper } from "../support/json-depth.ts";
import { isJsonObject } from "../support/json-object.ts";
import { explainArguments } from "./argument-problem.ts";
import type { ToolSpec } from "./tool-slots.ts";

/** Nesting that neither schemas nor arguments need, and recursive code cannot stand. */
const MAX_DEPTH = 64;
const MAX_CHECK_MS = 1000;
const PATTERNS = /"pattern(?:Properties)?":/;
const REFERENCES = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/**
 * Checks arguments against the pinned schema, without coercion (T-010, T-012). Schemas are compiled once; the
 * compiler is loaded with the first of them. Patterns run in linear time, because models and plugins write both
 * sides.
 */
export class ArgumentChecker {
  readonly #validators = new WeakMap<JsonObject, Promise<ValidateFunction>>();

  /** Loads and compiles ahead of a call; a failure shows when the call is checked. */
  warm(spec: ToolSpec): void {
    this.#validator(spec).catch(() => undefined);
  }

  /** The arguments as they are; rejects with `invalid_arguments` (T-011). */
  async check(spec: ToolSpec, input: unknown): Promise<JsonObject> {
    if (!isJsonObject(input)) {
      throw invalidArguments(spec.name, "the arguments are not a JSON object");
    }
    if (isNestedDeeper(input, MAX_DEPTH)) {
      throw invalidArguments(spec.name, `the arguments are nested deeper than ${MAX_DEPTH} levels`);
    }
    const validate = await this.#validator(spec);
    if (this.#isValid(validate, spec, input)) return input;
    const errors: readonly ErrorObject[] = validate.errors ?? [];
    throw invalidArguments(spec.name, explainArguments(errors, spec.parameters));
  }

  /** References can double what is checked at each step; a schema that never ends is not tried again. */
  #isValid(validate: ValidateFunction, spec: ToolSpec, input: JsonObject): boolean {
    if (!mentions(spec.parameters, REFERENCES)) return validate(input);
    return withinLimit(
      () => validate(input),
      MAX_CHECK_MS,
      () => {
        const error = unusableSchema(spec.name, "checking arguments against it does not end");
        const failed = Promise.reject(error);
        failed.catch(() => undefined);
        this.#validators.set(spec.parameters, failed);
        return error;
      },
    );
  }

  #validator(spec: ToolSpec): Promise<ValidateFunction> {
    let validator = this.#validators.get(spec.parameters);
    if (validator === undefined) {
      validator = compile(spec);
      this.#validators.set(spec.parameters, validator);
    }
    return validator;
  }
}

/** Names the tool, the field and what is expected of it, and asks for a corrected call (T-011). */
export function invalidArguments(tool: string, problem: string): CookieError {
  return new CookieError(
    "invalid_arguments",
    `invalid arguments for ${tool}: ${problem}. Call ${tool} again with corrected arguments.`,
  );
}

async function compile({ name, parameters }: ToolSpec): Promise<ValidateFunction> {
  if (isNestedDeeper(parameters, MAX_DEPTH)) throw unusableSchema(name, "it is nested too deeply");
  const Compiler = await loadCompiler(parameters);
  const code = mentions(parameters, PATTERNS) ? { regExp: await loadLinearRegExp() } : {};
  const options = {
    strict: false,
    logger: false,
    validateFormats: false,
    validateSchema: false,
    // Written out at each place that refers to it, a schema can grow a thousandfold.
    inlineRefs: false,
    // The optimizer takes time with the square of a schema's length.
    code: { ...code, optimize: false },
  } as const;
  try {
    return new Compiler(options).compile(parameters);
  } catch (error) {
    throw unusableSchema(name, error instanceof Error ? error.message : "it cannot be compiled");
  }
}

async function loadCompiler({ $schema: dialect }: JsonObject) {
  return typeof dialect === "string" && /draft-0[67]/.test(dialect)
    ? (await import("../support/json-schema-draft-07.ts")).Ajv
    : (await import("../support/json-schema-2020.ts")).Ajv2020;
}

async function loadLinearRegExp() {
  return (await import("../support/linear-reg-exp.ts")).linearRegExp;
}

function mentions(parameters: JsonObject, members: RegExp): boolean {
  return members.test(JSON.stringify(parameters));
}

function unusableSchema(tool: string, problem: string): CookieError {
  return new CookieError(
    "execution_failed",
    `the parameter schema of ${tool} cannot be used: ${problem}`,
  );
}
