import type { ModelOptions } from "./provider-config.ts";
import type { AdaptorRules } from "./provider-rules.ts";
import type { TableReader, TextRule } from "./table-reader.ts";
import { byteRange, plainText } from "./text-rules.ts";

const KEYS = ["beta", "organization", "project", "store", "api_path"];
/** Plausible in this table, but at home in `setup`. */
const SETUP_KEYS = ["api_version", "location", "region", "deployment"];
const MAX_BETAS = 32;

const apiPath: TextRule = (text) =>
  byteRange(1, 512)(text) ??
  (/^\/[^?#\p{Cc}]*$/u.test(text) ? undefined : "expected a path that begins with /");

export interface OptionsContext {
  readonly rules: AdaptorRules;
  readonly noAuth: boolean;
}

/** Decodes an `options` table; each option belongs to certain adaptors (C 5.4). */
export function decodeModelOptions(owner: TableReader, context: OptionsContext): ModelOptions {
  const reader = owner.table("options", [...KEYS, ...SETUP_KEYS]);
  if (reader === undefined) return {};
  for (const key of reader.keys()) {
    if (context.rules.options.includes(key)) continue;
    throw reader.fail(
      "provider_invalid",
      key,
      SETUP_KEYS.includes(key) ? "is a setup field" : "is not an option of this adaptor",
      SETUP_KEYS.includes(key) ? "move it to setup" : "remove it",
    );
  }
  const beta = reader.strings("beta", plainText(1, 512));
  if (beta !== undefined && (beta.length > MAX_BETAS || new Set(beta).size !== beta.length)) {
    throw reader.fail("invalid_value", "beta", `at most ${MAX_BETAS} different entries`);
  }
  const organization = reader.string("organization", plainText(1, 512));
  const project = reader.string("project", plainText(1, 256));
  const store = reader.boolean("store");
  if (store === true && context.noAuth) {
    throw reader.fail("provider_invalid", "store", "needs authentication", "remove it");
  }
  const path = reader.string("api_path", apiPath);
  return {
    ...(beta === undefined ? {} : { beta }),
    ...(organization === undefined ? {} : { organization }),
    ...(project === undefined ? {} : { project }),
    ...(store === undefined ? {} : { store }),
    ...(path === undefined ? {} : { apiPath: path }),
  };
}
