import { utf8Length } from "@cookie-agent/sdk/protocol";
import { bareRecord } from "./bare-record.ts";
import { decodeAuth, decodeSecret } from "./decode-auth.ts";
import { decodeCustomModel } from "./decode-custom-model.ts";
import { decodeEndpoint } from "./decode-endpoint.ts";
import type { KeyPath } from "./key-path.ts";
import type { AuthoredAuth, CustomModel, CustomProviderConfig } from "./provider-config.ts";
import { ADAPTORS, type AdaptorRules, AUTH_METHODS, FORBIDDEN_HEADERS } from "./provider-rules.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import {
  fieldIdentifier,
  hasControl,
  plainText,
  providerModelId,
  strictIdentifier,
} from "./text-rules.ts";

const KEYS = ["source", "endpoint", "adaptor", "setup", "api_key", "auth", "headers", "models"];
const NO_AUTH = "no-auth-v1";
const MAX_HEADERS = 64;
const MAX_HEADER_BYTES = 8192;
const MAX_HEADERS_BYTES = 64 * 1024;

/** Decodes an interpolated `[providers."custom.<x>"]` (C 5.4). */
export function decodeCustomProvider(
  id: string,
  value: unknown,
  path: KeyPath,
): CustomProviderConfig {
  const reader = new TableReader(value, path, KEYS);
  const adaptor = reader.required("adaptor", reader.string("adaptor", strictIdentifier));
  const rules = ADAPTORS.get(adaptor);
  if (rules === undefined) {
    const known = [...ADAPTORS.keys()].join(", ");
    throw reader.fail(
      "provider_invalid",
      "adaptor",
      `unsupported_adaptor: expected one of ${known}`,
    );
  }
  const endpoint = reader.required(
    "endpoint",
    decodeEndpoint(reader, "endpoint", rules.loopbackPath) ?? rules.defaultEndpoint,
  );
  const setup = decodeSetup(reader, rules);
  const auth = decodeCredential(reader, rules, endpoint);
  if (!rules.auth.includes(auth.method)) {
    throw reader.fail(
      "provider_invalid",
      ["auth", "method"],
      `invalid_auth: this adaptor takes ${rules.auth.join(", ")}`,
    );
  }
  const headers = decodeHeaders(reader, rules);
  const models = new Map<string, CustomModel>();
  const entries = reader.required("models", reader.table("models"));
  for (const model of entries.keys()) {
    const problem = providerModelId(model);
    if (problem !== undefined) throw entries.fail("provider_invalid", model, problem);
    const context = { id: model, adaptor, rules, setup, noAuth: auth.method === NO_AUTH };
    models.set(model, decodeCustomModel(entries, context));
  }
  if (models.size === 0) {
    throw reader.fail("provider_invalid", "models", "expected at least one model", "add one");
  }
  return { source: "custom", id, endpoint, adaptor, setup, auth, headers, models };
}

/** `auth` in full, `api_key` for the adaptor's usual method, or nothing for a server on this machine. */
function decodeCredential(
  reader: TableReader,
  rules: AdaptorRules,
  endpoint: string,
): AuthoredAuth {
  const authored = decodeAuth(reader, "auth");
  const apiKey = decodeSecret(reader, "api_key");
  if (authored !== undefined) {
    if (apiKey === undefined) return authored;
    throw reader.fail("conflict", "api_key", "excludes auth", "keep one of them");
  }
  const usual = rules.auth.find((method) => AUTH_METHODS.get(method)?.required[0] === "api_key");
  if (apiKey !== undefined && usual !== undefined) {
    return { method: usual, values: { api_key: apiKey }, parameters: {} };
  }
  if (apiKey === undefined && endpoint.startsWith("http:") && rules.auth.includes(NO_AUTH)) {
    return { method: NO_AUTH, values: {}, parameters: {} };
  }
  const key = usual === undefined ? "auth" : "api_key";
  throw reader.fail("missing_key", key, "is required by this adaptor", "add it");
}

const SETUP_RULES: Readonly<Record<string, TextRule>> = {
  project: (text) => (/^[a-z0-9][a-z0-9-]{0,255}$/.test(text) ? undefined : SETUP_NAME),
  location: setupName,
  region: setupName,
  deployment: setupName,
  api_version: (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? undefined : "expected YYYY-MM-DD"),
  resource: (text) => (text === "publishers/google" ? undefined : "expected publishers/google"),
};
const SETUP_NAME = "expected 1 to 256 of a-z, 0-9 and hyphen";

function setupName(text: string): string | undefined {
  return /^[a-z0-9-]{1,256}$/.test(text) ? undefined : SETUP_NAME;
}

function asciiText(text: string): string | undefined {
  return /^[\x20-\x7e]{1,256}$/.test(text) ? undefined : "expected 1 to 256 ASCII characters";
}

function decodeSetup(provider: TableReader, rules: AdaptorRules): Record<string, string> {
  const setup = bareRecord<string>();
  const reader = provider.table("setup");
  const allowed = [...rules.setup.required, ...rules.setup.optional];
  for (const field of reader?.keys() ?? []) {
    if (fieldIdentifier(field) !== undefined || !allowed.includes(field)) {
      throw provider.fail(
        "provider_invalid",
        ["setup", field],
        "invalid_setup: not a setup field of this adaptor",
        "remove it",
      );
    }
    const text = reader?.string(field) ?? "";
    const problem = (SETUP_RULES[field] ?? asciiText)(text);
    if (problem !== undefined) {
      throw provider.fail("provider_invalid", ["setup", field], `invalid_setup: ${problem}`);
    }
    setup[field] = text;
  }
  const missing = rules.setup.required.find((field) => setup[field] === undefined);
  if (missing === undefined) return setup;
  throw provider.fail(
    "provider_invalid",
    ["setup", missing],
    "invalid_setup: required by this adaptor",
    "add it",
  );
}

function decodeHeaders(provider: TableReader, rules: AdaptorRules): Record<string, string> {
  const headers = bareRecord<string>();
  const authored = provider.texts("headers") ?? {};
  let totalBytes = 0;
  for (const [authoredName, value] of Object.entries(authored)) {
    const name = authoredName.toLowerCase();
    totalBytes += name.length + utf8Length(value);
    const problem =
      headerProblem(authoredName, value, rules) ??
      (headers[name] === undefined ? undefined : "is there twice in different case") ??
      (totalBytes > MAX_HEADERS_BYTES ? "the headers exceed 64 KiB" : undefined);
    if (problem !== undefined) {
      throw provider.fail(
        "provider_invalid",
        ["headers", authoredName],
        `invalid_static_headers: ${problem}`,
      );
    }
    headers[name] = value;
  }
  if (Object.keys(headers).length > MAX_HEADERS) {
    throw provider.fail(
      "provider_invalid",
      "headers",
      `invalid_static_headers: at most ${MAX_HEADERS} entries`,
    );
  }
  return headers;
}

function headerProblem(name: string, value: string, rules: AdaptorRules): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)) return "expected an HTTP header name";
  const owned = [...FORBIDDEN_HEADERS, ...rules.ownedHeaders];
  if (owned.includes(name.toLowerCase())) return "cannot be set here";
  if (hasControl(value)) return "must not hold control characters";
  return plainText(0, MAX_HEADER_BYTES)(value);
}
