import { isJsonObject } from "../../support/json-object.ts";

/** The ids of the calls that one event of the chat wire names. */
export function readChatCallIds(event: unknown): string[] {
  const choice: unknown =
    isJsonObject(event) && Array.isArray(event.choices) ? event.choices[0] : undefined;
  const delta = isJsonObject(choice) ? choice.delta : undefined;
  if (!isJsonObject(delta) || !Array.isArray(delta.tool_calls)) return [];
  return delta.tool_calls.flatMap((call: unknown) =>
    isJsonObject(call) && typeof call.id === "string" && call.id.trim() !== "" ? [call.id] : [],
  );
}
