import { checkValue } from "../protocol/check-value.ts";
import { CookieError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import { isZodObject } from "./create-manifest.ts";
import type { ToolDefinition } from "./define-tool.ts";

/** The kernel has checked the arguments; this fills in defaults and applies the checks JSON Schema cannot express. */
export function parseArguments(tool: ToolDefinition, args: JsonObject): JsonObject {
  if (!isZodObject(tool.parameters)) return args;
  const checked = checkValue(tool.parameters, args);
  if (checked.ok) return checked.value;
  throw new CookieError("invalid_arguments", `${checked.field}: ${checked.problem}`, {
    data: { field: checked.field },
  });
}
