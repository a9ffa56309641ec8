import { decodeCapabilities } from "./decode-capabilities.ts";
import { decodeModelDefaults } from "./decode-model-defaults.ts";
import { decodeModelOptions } from "./decode-model-options.ts";
import { decodeVariants } from "./decode-variants.ts";
import type { CustomModel, ModelCapabilities } from "./provider-config.ts";
import type { AdaptorRules } from "./provider-rules.ts";
import type { TableReader } from "./table-reader.ts";
import { displayName, variantReference, wireModelId } from "./text-rules.ts";

const KEYS = [
  "enabled",
  "display_name",
  "model_id",
  "capabilities",
  "defaults",
  "options",
  "variants",
  "default_variant",
];

export interface CustomModelContext {
  readonly id: string;
  readonly adaptor: string;
  readonly rules: AdaptorRules;
  readonly setup: Readonly<Record<string, string>>;
  readonly noAuth: boolean;
}

/** Decodes `models."<id>"` of a custom provider (C 5.4). */
export function decodeCustomModel(models: TableReader, context: CustomModelContext): CustomModel {
  const reader = models.required(context.id, models.table(context.id, KEYS));
  const bare = context.noAuth && context.adaptor === "openai-responses";
  const capabilities = decodeCapabilities(reader, { toolCalling: !bare });
  if (bare) checkBareResponses(reader, capabilities);
  const limits = { capabilities, ...context };
  const variants = decodeVariants(reader, limits);
  const defaultVariant = reader.string("default_variant", variantReference) ?? null;
  if (defaultVariant !== null && defaultVariant !== "base" && !variants.has(defaultVariant)) {
    throw reader.fail("provider_invalid", "default_variant", "unknown_default_variant");
  }
  return {
    enabled: reader.boolean("enabled") ?? true,
    displayName: reader.string("display_name", displayName) ?? context.id,
    wireModelId:
      reader.string("model_id", wireModelId) ?? context.setup["deployment"] ?? context.id,
    capabilities,
    defaults: decodeModelDefaults(reader, capabilities),
    options: decodeModelOptions(reader, limits),
    variants,
    defaultVariant,
  };
}

/** Without a credential the Responses adaptor carries text and nothing else (C 5.6). */
function checkBareResponses(reader: TableReader, capabilities: ModelCapabilities): void {
  const { input, toolCalling, structuredOutput, reasoning, nativeReplay } = capabilities;
  const plain = input.length === 1 && !toolCalling && !structuredOutput && !reasoning;
  if (plain && (nativeReplay ?? "unsupported") === "unsupported") return;
  throw reader.fail(
    "provider_invalid",
    "capabilities",
    "invalid_custom_model: without authentication this adaptor carries text only",
  );
}
