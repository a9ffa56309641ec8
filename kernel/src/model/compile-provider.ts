import { CookieError, type Digest } from "@cookie-agent/sdk/protocol";
import type {
  AuthoredAuth,
  CustomModel,
  CustomProviderConfig,
  ModelCapabilities,
} from "../config/provider-config.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { sha256Hex } from "../support/digest.ts";
import type { AdaptorFacts } from "./adaptors/adaptor.ts";
import { ADAPTOR_IDS, findAdaptor } from "./adaptors/registry.ts";
import { type CompiledBehaviours, compileVariants } from "./compile-variants.ts";
import type { ModelBehaviour } from "./model-behaviour.ts";

/** How a request is authorized: by the provider package, by a header of its own, or not at all. */
export type CompiledAuth =
  | { readonly kind: "package_key"; readonly key: string }
  | { readonly kind: "header"; readonly name: string; readonly key: string }
  | { readonly kind: "none" };

/** A model that can be bound. */
export interface CompiledModel {
  readonly key: string;
  readonly providerId: string;
  readonly displayName: string;
  readonly adaptor: AdaptorFacts;
  readonly endpoint: string;
  readonly auth: CompiledAuth;
  readonly headers: Readonly<Record<string, string>>;
  readonly capabilities: ModelCapabilities;
  readonly base: ModelBehaviour;
  readonly variants: ReadonlyMap<string, ModelBehaviour>;
  /** Null: base behaviour. */
  readonly defaultVariant: string | null;
  /** Of everything that decides what is sent, without secrets. */
  readonly fingerprint: Digest;
}

/** Yields the enabled models of an authored provider, whose fields were checked when its file was read. */
export function compileProvider(provider: CustomProviderConfig): CompiledModel[] {
  const adaptor = findAdaptor(provider.adaptor);
  if (adaptor === undefined) {
    throw fail(
      "unsupported_adaptor",
      provider,
      `the adaptor ${provider.adaptor} is not available; use one of ${ADAPTOR_IDS.join(", ")}`,
    );
  }
  const auth = compileAuth(provider);
  const models: CompiledModel[] = [];
  for (const [modelId, model] of provider.models) {
    const key = `${provider.id}/${modelId}`;
    const behaviours = compileVariants(key, model, adaptor);
    if (!model.enabled) continue;
    models.push({
      key,
      providerId: provider.id,
      displayName: model.displayName,
      adaptor,
      endpoint: provider.endpoint,
      auth,
      headers: provider.headers,
      capabilities: model.capabilities,
      ...behaviours,
      defaultVariant: model.defaultVariant === "base" ? null : model.defaultVariant,
      fingerprint: fingerprintOf(provider, key, model, behaviours),
    });
  }
  return models;
}

function compileAuth(provider: CustomProviderConfig): CompiledAuth {
  const { method, parameters } = provider.auth;
  switch (method) {
    case "no-auth-v1":
      return { kind: "none" };
    case "api-key-header-v1":
      return {
        kind: "header",
        name: parameters.header_name ?? "x-api-key",
        key: keyOf(provider, provider.auth),
      };
    case "bearer-api-key-v1":
    case "anthropic-api-key-v1":
      return { kind: "package_key", key: keyOf(provider, provider.auth) };
    default:
      throw fail("invalid_auth", provider, `the auth method ${method} does not fit its adaptor`);
  }
}

function keyOf(provider: CustomProviderConfig, auth: AuthoredAuth): string {
  const key = auth.values.api_key?.reveal();
  if (key === undefined) throw fail("invalid_auth", provider, `${auth.method} needs an api_key`);
  return key;
}

function fingerprintOf(
  provider: CustomProviderConfig,
  key: string,
  model: CustomModel,
  { base, variants }: CompiledBehaviours,
): Digest {
  const { endpoint, adaptor, auth, headers } = provider;
  const definition = canonicalJson({
    key,
    endpoint,
    adaptor,
    auth: { method: auth.method, fields: Object.keys(auth.values), parameters: auth.parameters },
    headers,
    display_name: model.displayName,
    capabilities: { ...model.capabilities, media: [...model.capabilities.media] },
    base,
    variants: [...variants.values()],
    default_variant: model.defaultVariant,
  });
  return sha256Hex(`cookie-agent/model-definition/v1\0${definition}`);
}

function fail(code: string, provider: CustomProviderConfig, problem: string): CookieError {
  return new CookieError(code, `provider ${provider.id}: ${problem}`, {
    data: { provider: provider.id },
  });
}
