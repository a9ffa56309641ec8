import { decodeCustomProvider } from "./decode-custom-provider.ts";
import { decodeManagedProvider } from "./decode-managed-provider.ts";
import { type Environment, interpolateProvider } from "./interpolate-env.ts";
import type { ProviderConfig } from "./provider-config.ts";
import { TableReader } from "./table-reader.ts";
import { providerId } from "./text-rules.ts";

const CUSTOM_PREFIX = "custom.";
const OFFLINE_PROVIDER = "offline";

/** Decodes `[providers]`: ids, then interpolation, then each provider by its source (C 2.2 step 7). */
export function decodeProviders(value: unknown, env: Environment): Map<string, ProviderConfig> {
  const entries = new TableReader(value, ["providers"]);
  for (const id of entries.keys()) checkId(id, entries);
  const providers = new Map<string, ProviderConfig>();
  for (const id of entries.keys()) {
    const path = entries.at(id);
    const authored = new TableReader(entries.value(id), path);
    const written = authored.oneOf("source", ["models_dev", "custom"]);
    const source = written ?? (id.startsWith(CUSTOM_PREFIX) ? "custom" : undefined);
    if (source === undefined) throw missingSource(authored);
    if ((source === "custom") !== id.startsWith(CUSTOM_PREFIX)) {
      throw authored.fail(
        "provider_invalid",
        "source",
        'id and source disagree: source = "custom" goes with an id that starts with custom.',
      );
    }
    const interpolated = interpolateProvider(entries.value(id), path, env);
    providers.set(
      id,
      source === "custom"
        ? decodeCustomProvider(id, interpolated, path)
        : decodeManagedProvider(id, interpolated, path),
    );
  }
  return providers;
}

function missingSource(provider: TableReader): Error {
  return provider.fail(
    "missing_key",
    "source",
    "is required",
    `start the id with ${CUSTOM_PREFIX} to describe the provider here`,
  );
}

function checkId(id: string, entries: TableReader): void {
  const problem = id === CUSTOM_PREFIX ? "invalid provider id" : providerId(id);
  if (problem !== undefined) throw entries.fail("provider_invalid", id, problem);
  if (id === OFFLINE_PROVIDER) {
    throw entries.fail("provider_invalid", id, "the name is reserved", "choose another name");
  }
}
