import type { JsonObject } from "@cookie-agent/sdk/protocol";
import type { ErrorObject } from "ajv";

/** Says in one sentence which field is wrong and what it should be, for a model to correct it. */
export function explainArguments(errors: readonly ErrorObject[], parameters: JsonObject): string {
  const error = errors[0];
  if (error === undefined) return "they do not match the schema";
  const field = fieldName(error.instancePath);
  switch (error.keyword) {
    case "required":
      return `${fieldName(`${error.instancePath}/${error.params["missingProperty"]}`)} is missing`;
    case "additionalProperties":
    case "unevaluatedProperties":
      return unknownField(error, parameters);
    case "enum":
      return `${field} must be one of ${listValues(error.params["allowedValues"])}`;
    case "const":
      return `${field} must be ${JSON.stringify(error.params["allowedValue"])}`;
    default:
      return `${field} ${error.message ?? "has an unexpected value"}`;
  }
}

function unknownField(error: ErrorObject, parameters: JsonObject): string {
  const name = String(error.params["additionalProperty"] ?? error.params["unevaluatedProperty"]);
  const unknown = `${fieldName(`${error.instancePath}/${name}`)} is not known`;
  const { properties } = parameters;
  if (error.instancePath !== "" || typeof properties !== "object" || properties === null) {
    return unknown;
  }
  const names = Object.keys(properties);
  return names.length === 0
    ? `${unknown}; the tool takes no arguments`
    : `${unknown}; known are ${names.join(", ")}`;
}

/** `/edits/0/old~1String` as `"edits.0.old/String"`. */
function fieldName(pointer: string): string {
  if (pointer === "") return "the value";
  const steps = pointer.slice(1).split("/");
  return JSON.stringify(
    steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")).join("."),
  );
}

function listValues(values: unknown): string {
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(", ") : "";
}
