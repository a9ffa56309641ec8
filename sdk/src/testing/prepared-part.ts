import type { JsonObject } from "../protocol/scalars.ts";
import type { CallRequest } from "./wire-driver.ts";

/** The members of a call that a preparation decides. */
export function preparedPart(result: JsonObject): Partial<CallRequest> {
  const { prepared, arguments: normalized, resources } = result;
  const label: unknown = (resources as { label?: unknown }[] | undefined)?.[0]?.label;
  return {
    prepared: typeof prepared === "string" ? prepared : null,
    resource: typeof label === "string" ? label : null,
    ...(typeof normalized === "object" && normalized !== null
      ? { arguments: normalized as JsonObject }
      : {}),
  };
}
