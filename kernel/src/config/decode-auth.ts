import { utf8Length } from "@cookie-agent/sdk/protocol";
import { bareRecord } from "./bare-record.ts";
import type { AuthoredAuth } from "./provider-config.ts";
import { AUTH_METHODS } from "./provider-rules.ts";
import { Secret } from "./secret.ts";
import type { TableReader } from "./table-reader.ts";
import { plainText, strictIdentifier } from "./text-rules.ts";

const MAX_SECRET_BYTES = 16 * 1024;

/** Decodes `auth` or `auth_override`: the method, and exactly the fields that it has (C 5.2). */
export function decodeAuth(
  provider: TableReader,
  key: "auth" | "auth_override",
): AuthoredAuth | undefined {
  const known = key === "auth" ? ["method", "values", "parameters"] : ["method", "values"];
  const reader = provider.table(key, known);
  if (reader === undefined) return undefined;
  const name = reader.required("method", reader.string("method", strictIdentifier));
  const method = AUTH_METHODS.get(name);
  if (method === undefined) {
    const known = [...AUTH_METHODS.keys()].join(", ");
    throw reader.fail("provider_invalid", "method", `invalid_auth: expected one of ${known}`);
  }
  const fields = reader.required("values", reader.table("values"));
  const values = bareRecord<Secret>();
  for (const field of fields.keys()) {
    if (![...method.required, ...method.optional].includes(field)) {
      throw fields.fail("provider_invalid", field, "invalid_auth: not a field of this method");
    }
    values[field] = fields.required(field, decodeSecret(fields, field));
  }
  const missing = method.required.find((field) => values[field] === undefined);
  if (missing !== undefined) {
    throw fields.fail(
      "provider_invalid",
      missing,
      "invalid_auth: required by this method",
      "add it",
    );
  }
  return { method: name, values, parameters: decodeParameters(reader, method.parameters) };
}

/** A secret is never empty (C-037). */
export function decodeSecret(reader: TableReader, key: string): Secret | undefined {
  const text = reader.string(key, (secret) => {
    if (secret === "") return "a secret must not be empty";
    return utf8Length(secret) > MAX_SECRET_BYTES
      ? `a secret must have at most ${MAX_SECRET_BYTES} bytes`
      : undefined;
  });
  return text === undefined ? undefined : Secret.of(text);
}

function decodeParameters(
  reader: TableReader,
  allowed: Readonly<Record<string, readonly string[]>>,
): Record<string, string> {
  const parameters = reader.texts("parameters", plainText(1, 512)) ?? {};
  for (const [name, value] of Object.entries(parameters)) {
    const choices = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
    const problem =
      choices === undefined
        ? "invalid_auth: not a parameter of this method"
        : `invalid_auth: expected one of ${choices.join(", ")}`;
    if (!choices?.includes(value)) {
      throw reader.fail("provider_invalid", ["parameters", name], problem);
    }
  }
  const missing = Object.keys(allowed).find((name) => parameters[name] === undefined);
  if (missing === undefined) return parameters;
  throw reader.fail(
    "provider_invalid",
    ["parameters", missing],
    "invalid_auth: required by this method",
    "add it",
  );
}
