import type { JsonObject } from "@cookie-agent/sdk/protocol";

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
