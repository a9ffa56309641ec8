import { compareUtf8 } from "./compare-utf8.ts";
import { decodeModelDefaults } from "./decode-model-defaults.ts";
import { decodeModelOptions } from "./decode-model-options.ts";
import type { ModelCapabilities, VariantDirective, VariantReasoning } from "./provider-config.ts";
import type { AdaptorRules } from "./provider-rules.ts";
import type { TableReader } from "./table-reader.ts";
import { byteRange, displayName, variantId, wireModelId } from "./text-rules.ts";

const KEYS = ["operation", "display_name", "model_id", "defaults", "options", "reasoning"];

export interface VariantContext {
  readonly capabilities: ModelCapabilities;
  readonly rules: AdaptorRules;
  readonly noAuth: boolean;
}

/**
 * Decodes a `variants` map (C 5.7).
 * @param context What the adaptor and model allow; left out for a catalog model, whose rules are checked when it compiles.
 */
export function decodeVariants(
  owner: TableReader,
  context?: VariantContext,
): Map<string, VariantDirective> {
  const variants = new Map<string, VariantDirective>();
  const entries = owner.table("variants");
  for (const id of [...(entries?.keys() ?? [])].sort(compareUtf8)) {
    const problem = variantId(id);
    if (problem !== undefined) throw owner.fail("provider_invalid", ["variants", id], problem);
    const reader = entries?.table(id, KEYS);
    if (reader !== undefined) variants.set(id, decodeVariant(reader, context));
  }
  return variants;
}

function decodeVariant(reader: TableReader, context: VariantContext | undefined): VariantDirective {
  const operation = reader.required(
    "operation",
    reader.oneOf("operation", ["add", "replace", "disable"]),
  );
  // A custom model brings no variants of its own that a directive could change.
  if (context !== undefined && operation !== "add") {
    throw reader.fail("provider_invalid", "operation", "invalid_variant: there is no such variant");
  }
  const name = reader.string("display_name", displayName);
  const model = reader.string("model_id", wireModelId);
  const reasoning = decodeReasoning(reader, context);
  return {
    operation,
    ...(name === undefined ? {} : { displayName: name }),
    ...(model === undefined ? {} : { wireModelId: model }),
    defaults: decodeModelDefaults(reader, context?.capabilities),
    options: context === undefined ? {} : decodeModelOptions(reader, context),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

function decodeReasoning(
  owner: TableReader,
  context: VariantContext | undefined,
): VariantReasoning | undefined {
  const reader = owner.table("reasoning", ["type", "value", "enabled"]);
  if (reader === undefined) return undefined;
  if (context?.capabilities.reasoning === false) {
    throw owner.fail(
      "provider_invalid",
      "reasoning",
      "needs the capability reasoning",
      "remove it",
    );
  }
  const type = reader.required("type", reader.oneOf("type", ["effort", "toggle", "budget_tokens"]));
  if (context !== undefined && !context.rules.reasoning.includes(type)) {
    throw reader.fail(
      "provider_invalid",
      "type",
      `invalid_variant: this adaptor takes ${context.rules.reasoning.join(", ")}`,
    );
  }
  const stray = type === "toggle" ? "value" : "enabled";
  if (reader.has(stray)) {
    throw reader.fail(
      "unknown_key",
      stray,
      `is not a key of a reasoning of type ${type}`,
      "remove it",
    );
  }
  switch (type) {
    case "effort":
      return { type, value: reader.required("value", reader.string("value", byteRange(1, 64))) };
    case "toggle":
      return { type, enabled: reader.required("enabled", reader.boolean("enabled")) };
    case "budget_tokens":
      return { type, value: reader.required("value", reader.integer("value", { min: -1 })) };
  }
}
