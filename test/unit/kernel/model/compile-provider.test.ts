import { describe, expect, test } from "vitest";
import type { VariantDirective } from "../../../../kernel/src/config/provider-config.ts";
import { compileProvider } from "../../../../kernel/src/model/compile-provider.ts";
import { ADAPTORS, customModel, customProvider, keyAuth } from "./provider-fixture.ts";

const codeOf = (changes: Parameters<typeof customProvider>[0]): string => {
  try {
    compileProvider(customProvider(changes));
  } catch (error) {
    if (error instanceof Error && "code" in error) return String(error.code);
    throw error;
  }
  return "none";
};
const directive = (changes: Partial<VariantDirective> = {}): VariantDirective => ({
  operation: "add",
  defaults: {},
  options: {},
  ...changes,
});
const withVariant = (variant: VariantDirective) =>
  customModel({ variants: new Map([["v", variant]]) });

describe("a provider", () => {
  test.for(ADAPTORS)("%s compiles", (adaptor) => {
    expect(codeOf({ adaptor })).toBe("none");
  });

  test("of an adaptor that is not available is unsupported_adaptor, and says which are", () => {
    expect(codeOf({ adaptor: "google-gemini" })).toBe("unsupported_adaptor");
    expect(() => compileProvider(customProvider({ adaptor: "google-gemini" }))).toThrow(
      /^provider custom\.test: .*openai-compatible, openai-chat/,
    );
  });

  test("with a method its adaptor cannot send is invalid_auth, without naming the key", () => {
    const auth = { ...keyAuth("x", "sk-secret"), method: "aws-sigv4-credentials-v1" };
    expect(codeOf({ auth })).toBe("invalid_auth");
    expect(() => compileProvider(customProvider({ auth }))).not.toThrow(/sk-secret/);
    expect(codeOf({ auth: { ...keyAuth("x"), values: {} } as never })).toBe("invalid_auth");
  });

  test("yields its enabled models", () => {
    const models = new Map([
      ["on", customModel()],
      ["off", customModel({ enabled: false })],
    ]);
    const compiled = compileProvider(customProvider({ models }));
    expect(compiled.map((model) => model.key)).toEqual(["custom.test/on"]);
  });
});

describe("variants", () => {
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
    expect(compiled?.base.defaults).toEqual({ temperature: 0.1, stop: ["A", "B"] });
  });

  test.for<[string, VariantDirective["reasoning"], string]>([
    ["openai-compatible", { type: "effort", value: "anything" }, "none"],
    ["openai-responses", { type: "effort", value: "anything" }, "none"],
    ["openai-chat", { type: "effort", value: "anything" }, "invalid_variant"],
    ["openai-chat", { type: "effort", value: "minimal" }, "none"],
    ["anthropic", { type: "effort", value: "minimal" }, "invalid_variant"],
    ["anthropic", { type: "effort", value: "max" }, "none"],
    ["anthropic-compatible", { type: "toggle", enabled: false }, "none"],
    ["anthropic", { type: "budget_tokens", value: 1024 }, "none"],
    ["anthropic", { type: "budget_tokens", value: 8000 }, "invalid_variant"],
  ])("%s with %o: %s", ([adaptor, reasoning, code]) => {
    const model = withVariant(directive({ ...(reasoning !== undefined && { reasoning }) }));
    expect(codeOf({ adaptor, model })).toBe(code);
  });

  test("base is the name of no variant", () => {
    const model = customModel({ defaultVariant: "base" });
    expect(compileProvider(customProvider({ model }))[0]?.defaultVariant).toBeNull();
  });
});
