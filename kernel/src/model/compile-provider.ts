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
import { compileVariants, type ModelBehaviour } from "./compile-variants.ts";

/** How a request is authorized: by the provider package, by a header of its own, or not at all. */
export type CompiledAuth =
  | { readonly kind: "package_key"; readonly key: string }
  | { readonly kind: "header"; readonly name: string; readonly key: string }
  | { readonly kind: "none" };

/** A model that can be bound: every rule of its provider has been checked. */
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

/** Checks an authored provider and yields its enabled models; the first breach rejects it whole (C-146). */
export function compileProvider(provider: CustomProviderConfig): CompiledModel[] {
  const adaptor = findAdaptor(provider.adaptor);
  if (adaptor === undefined) {
    throw fail(
      "unsupported_adaptor",
      provider,
      `the adaptor ${provider.adaptor} is not available; use one of ${ADAPTOR_IDS.join(", ")}`,
    );
  }
  checkSetup(provider);
  const endpoint = checkEndpoint(provider, adaptor);
  const auth = compileAuth(provider, adaptor);
  checkHeaders(provider, adaptor);
  const models: CompiledModel[] = [];
  for (const [modelId, model] of provider.models) {
    const key = `${provider.id}/${modelId}`;
    checkModel(provider, modelId, model, auth);
    const { base, variants } = compileVariants(key, model, adaptor);
    if (!model.enabled) continue;
    models.push({
      key,
      providerId: provider.id,
      displayName: model.displayName,
      adaptor,
      endpoint,
      auth,
      headers: provider.headers,
      capabilities: model.capabilities,
      base,
      variants,
      defaultVariant: model.defaultVariant === "base" ? null : model.defaultVariant,
      fingerprint: fingerprintOf(provider, key, model, base, variants),
    });
  }
  return models;
}

function checkSetup(provider: CustomProviderConfig): void {
  const [field] = Object.keys(provider.setup);
  if (field !== undefined) {
    throw fail(
      "invalid_setup",
      provider,
      `the adaptor ${provider.adaptor} has no setup field ${field}`,
    );
  }
}

/** https anywhere; http only to this machine, with a port and the adaptor's own path (C-134). */
function checkEndpoint(provider: CustomProviderConfig, adaptor: AdaptorFacts): string {
  const endpoint = provider.endpoint.replace(/\/+$/, "");
  let url: URL;
  try {
    url = new URL(endpoint);
  } catch {
    throw fail("invalid_endpoint", provider, "the endpoint is not an absolute URL");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw fail("invalid_endpoint", provider, "the endpoint may have no user, query or fragment");
  }
  if (url.protocol === "https:") return endpoint;
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  // The port of the scheme is dropped by URL, so the text is asked.
  const hasPort = /^http:\/\/(?:\[[^\]]*\]|[^/:]*):\d+(?:\/|$)/i.test(endpoint);
  if (url.protocol !== "http:" || !loopback || !hasPort || url.pathname !== adaptor.loopbackPath) {
    throw fail(
      "invalid_endpoint",
      provider,
      `the endpoint must be https, or http://localhost:<port>${adaptor.loopbackPath} on this machine`,
    );
  }
  return endpoint;
}

function compileAuth(provider: CustomProviderConfig, adaptor: AdaptorFacts): CompiledAuth {
  const { auth } = provider;
  if (!adaptor.authMethods.includes(auth.method)) {
    throw fail(
      "invalid_auth",
      provider,
      `the auth method ${auth.method} does not fit ${adaptor.id}; use one of ${adaptor.authMethods.join(", ")}`,
    );
  }
  if (auth.method === "no-auth-v1") {
    expectFields(provider, auth, [], []);
    return { kind: "none" };
  }
  if (auth.method === "api-key-header-v1") {
    const key = expectFields(provider, auth, ["api_key"], ["header_name"]);
    const name = auth.parameters.header_name ?? "";
    if (name !== "x-api-key" && name !== "api-key") {
      throw fail("invalid_auth", provider, "header_name must be x-api-key or api-key");
    }
    return { kind: "header", name, key };
  }
  return { kind: "package_key", key: expectFields(provider, auth, ["api_key"], []) };
}

/** Exactly these fields; yields the key. */
function expectFields(
  provider: CustomProviderConfig,
  auth: AuthoredAuth,
  values: readonly string[],
  parameters: readonly string[],
): string {
  const wrong = (given: readonly string[], wanted: readonly string[]) =>
    given.length !== wanted.length || wanted.some((name) => !given.includes(name));
  if (wrong(Object.keys(auth.values), values) || wrong(Object.keys(auth.parameters), parameters)) {
    throw fail(
      "invalid_auth",
      provider,
      `${auth.method} takes the values [${values.join(", ")}] and the parameters [${parameters.join(", ")}]`,
    );
  }
  return auth.values.api_key?.reveal() ?? "";
}

const FORBIDDEN_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "anthropic-version",
  "api-key",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "proxy-authorization",
  "set-cookie",
  "transfer-encoding",
  "user-agent",
  "x-api-key",
  "x-goog-api-key",
]);

function checkHeaders(provider: CustomProviderConfig, adaptor: AdaptorFacts): void {
  for (const name of Object.keys(provider.headers)) {
    const lower = name.toLowerCase();
    if (FORBIDDEN_HEADERS.has(lower) || adaptor.forbiddenHeaders.includes(lower)) {
      throw fail(
        "invalid_static_headers",
        provider,
        `the header ${name} is set by the adaptor itself`,
      );
    }
  }
}

function checkModel(
  provider: CustomProviderConfig,
  modelId: string,
  model: CustomModel,
  auth: CompiledAuth,
): void {
  if (auth.kind !== "none") return;
  const reject = (problem: string) =>
    fail("invalid_custom_model", provider, `${modelId}: ${problem}`);
  const stores = [model.options, ...[...model.variants.values()].map((each) => each.options)];
  if (stores.some((options) => options.store === true)) {
    throw reject("store = true needs a credential");
  }
  if (provider.adaptor !== "openai-responses") return;
  const { input, toolCalling, structuredOutput, reasoning, nativeReplay } = model.capabilities;
  const plain = input.every((kind) => kind === "text");
  if (!plain || toolCalling || structuredOutput || reasoning) {
    throw reject(
      "openai-responses without a credential is text only: no tools, structured output, reasoning or media",
    );
  }
  if (nativeReplay !== undefined && nativeReplay !== "unsupported") {
    throw reject("openai-responses without a credential has native_replay unsupported");
  }
}

function fingerprintOf(
  provider: CustomProviderConfig,
  key: string,
  model: CustomModel,
  base: ModelBehaviour,
  variants: ReadonlyMap<string, ModelBehaviour>,
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
