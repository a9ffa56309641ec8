import { afterEach, describe, expect, test } from "vitest";
import { createModelRuntime } from "../../../../kernel/src/model/model-runtime.ts";
import { type ModelServer, startModelServer } from "../../../support/model-server.ts";
import {
  bind,
  collect,
  customModel,
  customProvider,
  keyAuth,
  runtimeOf,
} from "./provider-fixture.ts";

const VARIANTS = new Map([["fast", { operation: "add", defaults: {}, options: {} } as const]]);

const runtime = () =>
  createModelRuntime({
    providers: new Map(
      ["custom.b", "custom.a"].map((id) => [
        id,
        customProvider({
          id,
          models: new Map([
            ["z", customModel({ displayName: "Zed", variants: VARIANTS, defaultVariant: "fast" })],
            ["y/deep", customModel()],
            ["off", customModel({ enabled: false })],
          ]),
        }),
      ]),
    ),
    pricing: { models: new Map() },
    engineVersion: "1.0.0",
  });

describe("what can be selected", () => {
  test("enabled models by key, the offline model last", () => {
    expect(
      runtime()
        .list()
        .map((entry) => entry.key),
    ).toEqual(["custom.a/y/deep", "custom.a/z", "custom.b/y/deep", "custom.b/z", "offline/script"]);
  });

  test("an entry says what a client shows", () => {
    expect(runtime().list()[1]).toEqual({
      key: "custom.a/z",
      display_name: "Zed",
      available: true,
      offline: false,
      context_tokens: 100_000,
      output_tokens: 8_000,
      tool_calling: true,
      variants: ["fast"],
      default_variant: "fast",
    });
    expect(runtime().list().at(-1)).toMatchObject({ offline: true, available: true });
  });

  test("the first available model is never the offline one", () => {
    expect(runtime().firstAvailable()).toEqual({ model: "custom.a/y/deep", variant: null });
    const empty = createModelRuntime({
      providers: new Map(),
      pricing: { models: new Map() },
      engineVersion: "1.0.0",
    });
    expect(empty.firstAvailable()).toBeUndefined();
    expect(empty.list()).toHaveLength(1);
  });

  test.for([
    ["custom.a/z", null, "fast"],
    ["custom.a/z", "base", null],
    ["custom.a/z", "fast", "fast"],
    ["custom.a/z", "slow", undefined],
    ["custom.a/y/deep", null, null],
    ["custom.a/off", null, undefined],
    ["nobody/x", null, undefined],
    ["offline/script", null, null],
    ["offline/script", "base", null],
    ["offline/script", "fast", undefined],
  ] as const)("%s with the variant %o is %o", ([model, variant, expected]) => {
    expect(runtime().resolveVariant(model, variant)).toEqual(
      expected === undefined ? undefined : { model, variant: expected },
    );
  });

  test("a variant that is no longer there is neither had nor bound", async () => {
    const models = runtime();
    expect(models.has("custom.a/z", "fast")).toBe(true);
    expect(models.has("custom.a/z", null)).toBe(true);
    expect(models.has("custom.a/z", "gone")).toBe(false);
    expect(await models.bind({ model: "custom.a/z", variant: "gone" })).toBeUndefined();
    expect(await models.bind({ model: "custom.a/gone", variant: null })).toBeUndefined();
    expect((await models.bind({ model: "offline/script", variant: null }))?.contextTokens).toBe(
      null,
    );
  });
});

test("one bad authored provider fails the compile with its code", () => {
  expect(() => runtimeOf(customProvider({ adaptor: "nonsense" }))).toThrow(
    expect.objectContaining({ code: "unsupported_adaptor" }),
  );
});

describe("identity", () => {
  test("equal definitions have an equal revision, whatever the key; other ones do not", () => {
    const revision = runtimeOf(customProvider()).revision;
    expect(revision).toMatch(/^sha256:[0-9a-f]{64}$/);
    const otherKey = customProvider({ auth: keyAuth("openai-compatible", "another") });
    expect(runtimeOf(otherKey).revision).toBe(revision);
    const other = customProvider({ model: customModel({ wireModelId: "other" }) });
    expect(runtimeOf(other).revision).not.toBe(revision);
  });

  test("a binding names adaptor, endpoint, wire id and fingerprint, and no secret", async () => {
    const model = customModel({ variants: VARIANTS });
    const bound = await bind(customProvider({ model }), { variant: "fast" });
    expect(bound.resolved).toEqual({
      selection: { model: "custom.test/m", variant: "fast" },
      adapter_id: "openai-compatible",
      wire_model_id: "wire-model",
      endpoint_identity: "http://127.0.0.1:1/v1",
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
    expect(JSON.stringify(bound)).not.toContain("secret-key-value");
  });
});

describe("a run's binding", () => {
  let server: ModelServer | undefined;
  afterEach(() => server?.close());

  test("keeps its credentials when a new runtime replaces the old one", async () => {
    server = await startModelServer({ text: "one" }, { text: "two" });
    const before = customProvider({ endpoint: server.baseUrl });
    const bound = await bind(before);
    runtimeOf({ ...before, auth: keyAuth("openai-compatible", "new-key") });
    await collect(bound);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer secret-key-value");
  });
});
