import { decodeAuth, decodeSecret } from "./decode-auth.ts";
import { decodeEndpoint } from "./decode-endpoint.ts";
import { decodeModelDefaults } from "./decode-model-defaults.ts";
import { decodeVariants } from "./decode-variants.ts";
import type { KeyPath } from "./key-path.ts";
import type { ManagedModelOverride, ManagedProviderConfig } from "./provider-config.ts";
import { TableReader } from "./table-reader.ts";
import {
  displayName,
  fieldIdentifier,
  plainText,
  providerModelId,
  variantReference,
  wireModelId,
} from "./text-rules.ts";

const KEYS = [
  "source",
  "base_url",
  "setup",
  "api_key",
  "auth_override",
  "shape",
  "model_overrides",
];
const OVERRIDE_KEYS = [
  "enabled",
  "display_name",
  "model_id",
  "defaults",
  "variants",
  "default_variant",
  "shape",
  "compaction",
];
const COMPACTIONS = ["unsupported", "openai-responses-compact", "azure-responses-compact"] as const;

/** Decodes an interpolated `[providers.<id>]` of a catalog provider; the catalog has its say when it compiles (C 5.3). */
export function decodeManagedProvider(
  id: string,
  value: unknown,
  path: KeyPath,
): ManagedProviderConfig {
  const reader = new TableReader(value, path, KEYS);
  const baseUrl = decodeEndpoint(reader, "base_url");
  const apiKey = decodeSecret(reader, "api_key");
  const authOverride = decodeAuth(reader, "auth_override");
  if (apiKey !== undefined && authOverride !== undefined) {
    throw reader.fail("conflict", "api_key", "excludes auth_override", "remove one of them");
  }
  if (baseUrl !== undefined && apiKey === undefined && authOverride === undefined) {
    throw reader.fail(
      "provider_invalid",
      "base_url",
      "authored_base_url_requires_auth: needs api_key or auth_override beside it",
      "add one",
    );
  }
  const shape = reader.oneOf("shape", ["chat", "responses"]);
  return {
    source: "models_dev",
    id,
    ...(baseUrl === undefined ? {} : { baseUrl }),
    setup: decodeSetup(reader),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(authOverride === undefined ? {} : { authOverride }),
    ...(shape === undefined ? {} : { shape }),
    modelOverrides: decodeOverrides(reader),
  };
}

function decodeSetup(provider: TableReader): Record<string, string> {
  const setup = provider.texts("setup", plainText(1, 2048)) ?? {};
  const bad = Object.keys(setup).find((field) => fieldIdentifier(field) !== undefined);
  if (bad === undefined) return setup;
  throw provider.fail(
    "provider_invalid",
    ["setup", bad],
    "invalid_setup: invalid field identifier",
  );
}

function decodeOverrides(provider: TableReader): Map<string, ManagedModelOverride> {
  const overrides = new Map<string, ManagedModelOverride>();
  const entries = provider.table("model_overrides");
  for (const model of entries?.keys() ?? []) {
    const problem = providerModelId(model);
    if (problem !== undefined) {
      throw provider.fail("provider_invalid", ["model_overrides", model], problem);
    }
    const reader = entries?.table(model, OVERRIDE_KEYS);
    if (reader !== undefined) overrides.set(model, decodeOverride(reader));
  }
  return overrides;
}

function decodeOverride(reader: TableReader): ManagedModelOverride {
  const enabled = reader.boolean("enabled");
  const name = reader.string("display_name", displayName);
  const model = reader.string("model_id", wireModelId);
  const defaultVariant = reader.string("default_variant", variantReference);
  const shape = reader.oneOf("shape", ["chat", "responses"]);
  return {
    ...(enabled === undefined ? {} : { enabled }),
    ...(name === undefined ? {} : { displayName: name }),
    ...(model === undefined ? {} : { wireModelId: model }),
    defaults: decodeModelDefaults(reader, undefined),
    variants: decodeVariants(reader),
    ...(defaultVariant === undefined ? {} : { defaultVariant }),
    ...(shape === undefined ? {} : { shape }),
    compaction: reader.oneOf("compaction", COMPACTIONS) ?? "unsupported",
  };
}
