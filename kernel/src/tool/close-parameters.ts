import type { JsonObject } from "@cookie-agent/sdk/protocol";

/** Members through which a schema may mean properties that its own `properties` do not list. */
const OPEN_MEMBERS = [
  "additionalProperties",
  "unevaluatedProperties",
  "patternProperties",
  "propertyNames",
  "allOf",
  "anyOf",
  "oneOf",
  "if",
  "not",
  "$ref",
  "$dynamicRef",
  "dependentSchemas",
];

/** Surplus arguments fail for every tool (T-009): a schema that does not speak of them is closed. */
export function closeParameters(parameters: JsonObject): JsonObject {
  if (OPEN_MEMBERS.some((member) => member in parameters)) return parameters;
  return { ...parameters, additionalProperties: false };
}
