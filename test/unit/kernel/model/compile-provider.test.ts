import { describe, expect, test } from "vitest";
import type { VariantDirective } from "../../../../kernel/src/config/provider-config.ts";
import { Secret } from "../../../../kernel/src/config/secret.ts";
import { compileProvider } from "../../../../kernel/src/model/compile-provider.ts";
import {
  ADAPTORS,
  CAPABILITIES,
  customModel,
  customProvider,
  keyAuth,
} from "./provider-fixture.ts";

const NO_AUTH = { method: "no-auth-v1", values: {}, parameters: {} };
const codeOf = (changes: Parameters<typeof customProvider>[0]): string => {
  try {
    compileProvider(customProvider(changes));
  } catch (error) {
    if (error instanceof Error && "code" in error) return String(error.code);
    throw error;
  }
  return "none";
};

describe("[C-134] the endpoint", () => {
  test.for([
    "https://example.com/v1",
    "https://example.com",
    "https://example.com:8443/any/path",
    "http://localhost:8080/v1",
    "http://127.0.0.1:1/v1",
    "http://[::1]:11434/v1",
    "http://localhost:80/v1",
  ])("%s is accepted", (endpoint) => {
    expect(codeOf({ endpoint })).toBe("none");
  });

  test.for([
    "http://example.com:80/v1",
    "http://localhost/v1",
    "http://localhost:8080",
    "http://localhost:8080/v2",
    "http://localhost:8080/v1/chat",
    "http://127.0.0.1.evil.example:80/v1",
    "http://localhost:80@evil.example/v1",
    "https://user:pass@example.com/v1",
    "https://example.com/v1?key=1",
    "https://example.com/v1#x",
    "ftp://example.com/v1",
    "example.com/v1",
  ])("%s is invalid_endpoint", (endpoint) => {
    expect(codeOf({ endpoint })).toBe("invalid_endpoint");
  });
});

describe("[C-135] adaptor, setup and auth", () => {
  test.for(ADAPTORS)("%s is available", (adaptor) => {
    expect(codeOf({ adaptor })).toBe("none");
  });

  test("another adaptor is unsupported_adaptor", () => {
    expect(codeOf({ adaptor: "google-gemini" })).toBe("unsupported_adaptor");
  });

  test("a setup field is invalid_setup", () => {
    expect(codeOf({ setup: { region: "eu" } })).toBe("invalid_setup");
  });

  test.for<[string, object]>([
    ["anthropic", keyAuth("openai-chat")],
    ["anthropic", NO_AUTH],
    ["openai-chat", keyAuth("anthropic")],
    ["openai-responses", { ...keyAuth("x"), method: "api-key-header-v1" }],
    ["openai-chat", { ...keyAuth("x"), values: {} }],
    ["openai-chat", { ...keyAuth("x"), values: { api_key: Secret.of("k"), more: Secret.of("k") } }],
    ["openai-chat", { ...keyAuth("x"), parameters: { header_name: "api-key" } }],
    ["openai-compatible", { ...NO_AUTH, values: { api_key: Secret.of("k") } }],
    ["openai-compatible", { ...keyAuth("x"), method: "api-key-header-v1" }],
    [
      "openai-compatible",
      {
        ...keyAuth("x"),
        method: "api-key-header-v1",
        parameters: { header_name: "authorization" },
      },
    ],
  ])("%s with %o is invalid_auth", ([adaptor, auth]) => {
    expect(codeOf({ adaptor, auth: auth as ReturnType<typeof keyAuth> })).toBe("invalid_auth");
  });

  test("a rejection names the provider and not the key", () => {
    const auth = { ...keyAuth("x", "sk-secret"), method: "nonsense" };
    expect(() => compileProvider(customProvider({ auth }))).toThrow(/^provider custom\.test: /);
    expect(() => compileProvider(customProvider({ auth }))).not.toThrow(/sk-secret/);
  });
});

describe("static headers", () => {
  test.for([
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "host",
    "cookie",
    "user-agent",
    "content-type",
    "content-length",
    "transfer-encoding",
    "anthropic-version",
    "Authorization",
  ])("%s is invalid_static_headers", (name) => {
    expect(codeOf({ headers: { [name]: "v" } })).toBe("invalid_static_headers");
  });

  test("anthropic-beta belongs to the Anthropic adaptors alone", () => {
    const headers = { "anthropic-beta": "x" };
    expect(codeOf({ adaptor: "anthropic", headers })).toBe("invalid_static_headers");
    expect(codeOf({ adaptor: "openai-compatible", headers })).toBe("none");
  });
});

describe("without a credential", () => {
  test("[C-140] store = true is rejected, in a variant too", () => {
    const options = { store: true };
    const variants = new Map([["v", { operation: "add", defaults: {}, options } as const]]);
    for (const model of [customModel({ options }), customModel({ variants })]) {
      expect(codeOf({ adaptor: "openai-chat", auth: NO_AUTH, model })).toBe("invalid_custom_model");
      expect(codeOf({ adaptor: "openai-chat", model })).toBe("none");
    }
  });

  const plain = { ...CAPABILITIES, toolCalling: false, parallelToolCalls: false, reasoning: false };
  test.for([
    [plain, "none"],
    [{ ...plain, toolCalling: true }, "invalid_custom_model"],
    [{ ...plain, structuredOutput: true }, "invalid_custom_model"],
    [{ ...plain, reasoning: true }, "invalid_custom_model"],
    [{ ...plain, input: ["text", "image"] as const }, "invalid_custom_model"],
    [{ ...plain, nativeReplay: "optional" as const }, "invalid_custom_model"],
  ] as const)("openai-responses with %o: %s", ([capabilities, code]) => {
    const model = customModel({ capabilities });
    expect(codeOf({ adaptor: "openai-responses", auth: NO_AUTH, model })).toBe(code);
  });
});

describe("variants", () => {
  const directive = (changes: Partial<VariantDirective> = {}): VariantDirective => ({
    operation: "add",
    defaults: {},
    options: {},
    ...changes,
  });
  const withVariant = (variant: VariantDirective, changes = {}) =>
    customModel({ variants: new Map([["v", variant]]), ...changes });

  test("a variant inherits field by field, and lists replace", () => {
    const model = customModel({
      defaults: { temperature: 0.1, stop: ["A", "B"] },
      options: { organization: "org" },
      variants: new Map([
        [
          "v",
          directive({
            defaults: { stop: ["C"], topP: 0.5 },
            options: { project: "p" },
            wireModelId: "other",
          }),
        ],
      ]),
    });
    const [compiled] = compileProvider(customProvider({ adaptor: "openai-chat", model }));
    expect(compiled?.variants.get("v")).toEqual({
      variant: "v",
      wireModelId: "other",
      defaults: { temperature: 0.1, stop: ["C"], topP: 0.5 },
      options: { organization: "org", project: "p" },
      reasoning: null,
    });
  });

  test("[C-155] replace and disable need a variant that exists", () => {
    for (const operation of ["replace", "disable"] as const) {
      expect(codeOf({ model: withVariant(directive({ operation })) })).toBe("invalid_variant");
    }
  });

  test("variants are listed in the order of their ids", () => {
    const variants = new Map(["b", "a", "c"].map((id) => [id, directive()]));
    const [compiled] = compileProvider(customProvider({ model: customModel({ variants }) }));
    expect([...(compiled?.variants.keys() ?? [])]).toEqual(["a", "b", "c"]);
  });

  test.for<[string, VariantDirective["reasoning"], string]>([
    ["openai-compatible", { type: "effort", value: "anything" }, "none"],
    ["openai-chat", { type: "effort", value: "anything" }, "invalid_variant"],
    ["anthropic", { type: "effort", value: "minimal" }, "invalid_variant"],
    ["anthropic", { type: "effort", value: "max" }, "none"],
    ["openai-compatible", { type: "toggle", enabled: true }, "invalid_variant"],
    ["openai-responses", { type: "budget_tokens", value: 100 }, "invalid_variant"],
    ["anthropic-compatible", { type: "toggle", enabled: false }, "none"],
    ["anthropic", { type: "budget_tokens", value: 1024 }, "none"],
    ["anthropic", { type: "budget_tokens", value: 8000 }, "invalid_variant"],
  ])("[C-156] %s with %o: %s", ([adaptor, reasoning, code]) => {
    const model = withVariant(directive({ ...(reasoning !== undefined && { reasoning }) }));
    expect(codeOf({ adaptor, model })).toBe(code);
  });

  test("a variant needs the capability that it uses", () => {
    const reasoning = { type: "effort", value: "high" } as const;
    const capabilities = { ...CAPABILITIES, reasoning: false, temperature: false };
    expect(codeOf({ model: withVariant(directive({ reasoning }), { capabilities }) })).toBe(
      "invalid_variant",
    );
    const warm = directive({ defaults: { temperature: 1 } });
    expect(codeOf({ model: withVariant(warm, { capabilities }) })).toBe("invalid_variant");
  });

  test("an unknown default variant has its own code", () => {
    expect(codeOf({ model: customModel({ defaultVariant: "x" }) })).toBe("unknown_default_variant");
    expect(codeOf({ model: customModel({ defaultVariant: "base" }) })).toBe("none");
  });
});
