import type { ModelCapabilities, ModelDefaults, ToolChoice } from "./provider-config.ts";
import { TableReader } from "./table-reader.ts";
import { plainText, toolName } from "./text-rules.ts";

const KEYS = ["temperature", "top_p", "seed", "max_output_tokens", "stop", "tool_choice"];
const MAX_STOPS = 8;

/**
 * Decodes a `defaults` table (C 5.4).
 * @param capabilities What the model can do; left out for a catalog model, whose record is not here.
 */
export function decodeModelDefaults(
  owner: TableReader,
  capabilities: ModelCapabilities | undefined,
): ModelDefaults {
  const reader = owner.table("defaults", KEYS);
  if (reader === undefined) return {};
  if (capabilities !== undefined) checkCapabilities(reader, capabilities);
  const temperature = reader.number("temperature", { min: 0, max: 2 });
  const topP = reader.number("top_p", { min: 0, max: 1 });
  const seed = reader.integer("seed");
  const maxOutputTokens = reader.integer("max_output_tokens", {
    min: 1,
    ...(capabilities === undefined ? {} : { max: capabilities.outputTokens }),
  });
  const stop = reader.strings("stop", plainText(1, 256));
  if (stop !== undefined && stop.length > MAX_STOPS) {
    throw reader.fail("invalid_value", "stop", `at most ${MAX_STOPS} entries`);
  }
  const toolChoice = decodeToolChoice(reader);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stop === undefined ? {} : { stop }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  };
}

function checkCapabilities(reader: TableReader, capabilities: ModelCapabilities): void {
  const needs: readonly (readonly [string, string, boolean])[] = [
    ["temperature", "temperature", capabilities.temperature],
    ["top_p", "top_p", capabilities.topP],
    ["seed", "seed", capabilities.seed],
    ["tool_choice", "tool_calling", capabilities.toolCalling],
  ];
  for (const [key, capability, present] of needs) {
    if (!reader.has(key) || present) continue;
    throw reader.fail("provider_invalid", key, `needs the capability ${capability}`, "remove it");
  }
}

function decodeToolChoice(reader: TableReader): ToolChoice | undefined {
  const authored = reader.value("tool_choice");
  if (authored === undefined || typeof authored === "string") {
    return reader.oneOf("tool_choice", ["auto", "none", "required"]);
  }
  const table = new TableReader(authored, reader.at("tool_choice"), ["named"]);
  return { named: table.required("named", table.string("named", toolName)) };
}
